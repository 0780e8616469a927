"""The tier on disk: the same bits as from memory, what is booked, and what it leaves behind."""

import gc
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback.schedules import Delete, EndForward, EndReverse, Load, Record, Reverse, Save, Transfer
from pullback.stores import Disk, InMemory, Stored, Zlib

X = np.linspace(0.1, 0.9, 60).reshape(6, 10)


def bits(leaves):
    return [np.asarray(leaf).tobytes() for leaf in leaves]


def fori(x):
    return pb.fori_loop(0, 23, lambda k, u: np.sin(u) * x + 0.1 * u, x)


def scanned(x):
    def step(carry, row):
        u, n, s = carry
        return (np.cos(u) * x + row, n + 1, s + np.sum(u * u)), np.sum(u)

    (u, _, s), ys = pb.scan(step, (x, 0, 0.0), np.ones((17, 10)) * x[0])
    return u * s + np.sum(ys)


def waiting(x):
    u, _ = pb.while_loop(lambda c: c[1] < 19.0, lambda c: (np.tanh(c[0] * x) + c[0], c[1] + 1.0), (x, 0.0))
    return u


def nested(x):
    def outer(k, u):
        return pb.fori_loop(0, 3, lambda j, v: np.sin(v) * x, u) + k * u

    return pb.fori_loop(0, 9, outer, x)


def leapfrog(x):
    before, now, c = np.zeros_like(x), x, x * x
    for k in pb.steps(21):
        new = 2.0 * now - before
        new[1:-1] += 0.1 * c[1:-1] * (now[2:] - 2.0 * now[1:-1] + now[:-2])
        new[0] = 0.01 * k
        before, now = now, new
    return now


def left_early(x):
    """Loops in marked steps, values from before them, and an end that no schedule has foreseen."""
    u, c, table = x, np.exp(-x), np.linspace(0.1, 0.4, 4)
    for k in pb.steps(40):
        u = pb.fori_loop(0, 2, lambda j, v: np.sin(v) * c, u) + table[k % 4]
        u[1:] += 0.1 * u[:-1]
        if k == 30:
            break
    return u


def unmarked(x):
    u, c = x, np.exp(-x)
    for _ in range(60):
        u = np.sin(u) * c + x.T.copy().T
    return u


def fortran(x):
    """Sums over axes of a state in Fortran's order: their bits depend on it."""
    start = np.asfortranarray(np.ones((7, 9)) / 3.0) * x[0, 0]

    def body(k, u):
        return np.sin(u * 0.9 + np.sum(u, axis=1, keepdims=True) * 1e-3 + np.sum(u * u) * x[1, 1])

    return np.sum(pb.fori_loop(0, 13, body, start))


PROGRAMS = (fori, scanned, waiting, nested, leapfrog, left_early, unmarked, fortran)


@frozen
class TapesIn(pb.MemoryPolicy):
    """Every tape in one tier, where it lies through the forward pass."""

    tier: str

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        for k in range(n):
            yield Record(k)
            yield Save("tape", k, self.tier)
        yield EndForward()
        for k in reversed(range(n)):
            yield Load("tape", k, self.tier)
            yield Reverse(k)
            yield Delete("tape", k, self.tier)
        yield EndReverse()


@frozen
class TapesByWayOfMemory(pb.MemoryPolicy):
    """Every tape saved in memory, copied to disk, dropped in memory, and back the same way."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        for k in range(n):
            yield Record(k)
            yield Save("tape", k)
            yield Transfer("tape", k, "memory", "disk")
            yield Delete("tape", k)
        yield EndForward()
        for k in reversed(range(n)):
            yield Transfer("tape", k, "disk", "memory")
            yield Delete("tape", k, "disk")
            yield Load("tape", k)
            yield Delete("tape", k)
            yield Reverse(k)
        yield EndReverse()


KNOWN = (pb.Periodic(3, tier="disk"), pb.Periodic(4, snapshots=1, tier="disk"), Stored(pb.Recompute(3), memory=Disk()))
ALL = (
    *KNOWN,
    pb.Periodic(3, tier=Disk(queue=1)), pb.Periodic(3, tier=Disk(codec=Zlib(6))), pb.Periodic(5, tier=InMemory(Zlib())),
    Stored(pb.Binomial(2), memory=Disk()), Stored(pb.Binomial(3), memory=InMemory(Zlib(0))),
)  # fmt: skip


def gradient(f, x, policy, pulls=1):
    out, pull = pb.vjp(f, x, policy=policy)
    found = [pull(np.ones_like(out))[0] for _ in range(pulls)]
    pull.close()
    assert pull.ledger.total == 0
    return found


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    """What is stored in the temporary directory goes, too."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.share(12, of=lambda f, staging, policy: f)
@pytest.mark.parametrize("policy", ALL, ids=repr)
@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_the_same_bits_as_from_memory(f, policy, staging):
    with pb.using(staging=staging):
        for x in (X, 0.3 - X):
            expected = gradient(f, x, pb.SaveAll())
            assert bits(gradient(f, x, policy, 2)) == 2 * bits(expected)


@pytest.mark.share(8, of=lambda f, staging, policy: f)
@pytest.mark.parametrize(
    "policy", [TapesIn("disk"), TapesByWayOfMemory(), Stored(pb.SaveAll(), memory=Disk())], ids=repr
)
@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("f", [fori, scanned, nested, fortran, leapfrog, left_early])
def test_tapes_come_back_too(f, policy, staging):
    with pb.using(staging=staging):
        for x in (X, 0.3 - X):
            assert bits(gradient(f, x, policy, 2)) == 2 * bits(gradient(f, x, pb.SaveAll()))


@pytest.mark.parametrize("policy", [TapesIn("disk"), TapesByWayOfMemory(), Stored(pb.SaveAll(), memory=Disk())])
@pytest.mark.parametrize("f", [leapfrog, left_early])
def test_tapes_that_nobody_reverses_are_let_go(f, policy):
    pull = pb.vjp(f, X, policy=policy)[1]
    pull.close()
    assert pull.ledger.total == 0
    pb.vjp(f, X, policy=policy)  # the fixture looks for files


def test_tapes_of_marked_steps_are_not_in_memory():
    def marked(u):
        for _ in pb.steps(60):
            u = np.sin(u) * u + 0.1
        return np.sum(u)

    x, peaks, gradients = np.linspace(0.1, 1.0, 50_000), [], []
    for policy in (pb.SaveAll(), Stored(pb.SaveAll(), memory=Disk())):
        pb.grad(marked, policy=policy)(x[:10])
        tracemalloc.start()
        gradients.append(pb.grad(marked, policy=policy)(x))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert gradients[0].tobytes() == gradients[1].tobytes()
    assert peaks[1] < 20 * x.nbytes < 120 * x.nbytes < peaks[0]


@pytest.mark.parametrize("policy", KNOWN, ids=repr)
def test_second_derivatives(policy):
    def total(x):
        return np.sum(fori(x))

    v = np.cos(X)
    expected = pb.hvp(total, (X,), (v,))
    assert pb.hvp(total, (X,), (v,), policy=policy).tobytes() == expected.tobytes()
    outer = pb.grad(lambda x: np.sum(pb.grad(total)(x) * v))(X)
    found = pb.grad(lambda x: np.sum(pb.grad(total, policy=policy)(x) * v))(X)
    assert found.tobytes() == outer.tobytes()


def test_states_of_any_structure():
    """Numbers, NumPy scalars, 0-d arrays, structured and complex values, integers, strings, one array behind two
    leaves, a frozen one, a generator, an empty array."""
    record = np.zeros(3, [("a", "f8"), ("b", "i4", (2,))])
    record["a"] = 0.1, 0.2, 0.3
    one, frozen_ = np.arange(4.0), np.arange(3)
    frozen_.flags.writeable = False

    def f(x):
        def body(k, s):
            u = s["u"] * np.sin(s["x"]) + s["scalar"] + s["zero"] + s["random"].normal() + s["one"][0] + s["two"][1]
            z = s["z"] * (0.9 + 0.1j) + np.sum(u)
            return s | {"u": u + np.abs(z), "z": z, "n": s["n"] + 1, "scalar": s["scalar"] * np.float32(0.5)}

        s = {
            "u": x, "x": x, "n": 0, "scalar": np.float32(0.5), "zero": np.array(0.25), "z": 1j, "record": record,
            "one": one, "two": one, "frozen": frozen_, "text": np.array(["a", "bc"]), "none": None,
            "when": np.array(["2020-01-01"], "M8[D]"), "empty": np.zeros((0, 3)), "random": np.random.default_rng(3),
            "long": np.longdouble(1) / 3 * np.ones(2, np.longdouble), "flag": True,
        }  # fmt: skip
        after = pb.fori_loop(0, 14, body, s)
        assert after["n"] == 14
        return np.sum(after["u"]) + after["scalar"]

    expected = pb.grad(f)(X)
    for policy in ALL:
        assert pb.grad(f, policy=policy)(X).tobytes() == expected.tobytes(), policy


@pytest.mark.parametrize("policy", [*KNOWN, pb.Periodic(3, tier=Disk(queue=1)), TapesIn("disk")], ids=repr)
@pytest.mark.parametrize("f", [fori, scanned])
def test_the_plan_is_what_is_measured(f, policy, tmp_path):
    plan = pb.plan(f, X, policy=policy)
    assert list(tmp_path.iterdir()) == []  # it stores nothing
    out, pull = pb.vjp(f, X, policy=policy)
    pull(np.ones_like(out))
    report = pull.report
    assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)


def test_the_queue_is_what_is_in_memory():
    out, pull = pb.vjp(fori, X, policy=pb.Periodic(2, tier=Disk(queue=3)))
    assert pull.ledger.now["queue"] == 3 * X.nbytes  # the last three, on their way
    in_memory = pb.vjp(fori, X, policy=pb.Periodic(2))[1].report
    assert in_memory.live_bytes - pull.report.live_bytes == (10 - 3) * X.nbytes  # x_0 is held for another reverse pass
    pull(np.ones_like(out))
    assert pull.ledger.now["queue"] == 0


def test_the_report_says_what_the_disk_did():
    out, pull = pb.vjp(fori, X, policy=pb.Periodic(3, tier="disk"))
    pull(np.ones_like(out))
    (told,) = pull.report.stores
    assert (told.tier, told.codec, told.lossy, told.n_writes) == ("disk", "", False, 7)
    assert told.given_bytes == 7 * X.nbytes
    assert "'disk': 7 parts written" in str(pull.report)


def test_parts_are_npy_files_without_pickles(tmp_path):
    _, pull = pb.vjp(fori, X, policy=pb.Periodic(3, tier=Disk(tmp_path / "here")))
    assert pull.report.stores  # waits until they are written
    parts = sorted((tmp_path / "here").glob("pullback-*/*.npy"))
    assert len(parts) == 7
    assert np.load(parts[0], allow_pickle=False).tobytes() == X.tobytes()
    pull.close()
    assert list((tmp_path / "here").iterdir()) == []
    (tmp_path / "here").rmdir()


def test_a_policy_may_name_a_directory(tmp_path):
    class Here(TapesIn):
        tiers = property(lambda self: {"disk": tmp_path / "here"})

    _, pull = pb.vjp(fori, X, policy=Here("disk"))
    assert len(list((tmp_path / "here").iterdir())) == 2
    pull.close()
    (tmp_path / "here").rmdir()


def test_a_pull_that_is_forgotten_leaves_nothing(tmp_path):
    pull = pb.vjp(fori, X, policy=pb.Periodic(3, tier="disk"))[1]
    assert len(list(tmp_path.iterdir())) == 2  # the folder and its lock
    del pull
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_program_leaves_nothing(tmp_path):
    def f(x):
        def body(k, u):
            if k == 9:
                raise ZeroDivisionError
            return np.sin(u)

        return pb.fori_loop(0, 20, body, x)

    with pytest.raises(ZeroDivisionError):
        pb.vjp(f, X, policy=pb.Periodic(2, tier="disk"))
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import os, sys
import numpy as np
import pullback as pb
X = np.linspace(0.1, 0.9, 60).reshape(6, 10)
policy = pb.Periodic(3, tier=pb.stores.Disk(sys.argv[1]))
out, pull = pb.vjp(lambda x: pb.fori_loop(0, 23, lambda k, u: np.sin(u) * x + 0.1 * u, x), X, policy=policy)
{after}
"""


def run(directory, after):
    arguments = [sys.executable, "-c", PROGRAM.format(after=after), str(directory)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_killed_run_is_tidied_up_after(tmp_path):
    where = tmp_path / "here"
    with run(where, "os.kill(os.getpid(), 9)"):
        pass
    assert len(list(where.iterdir())) == 2
    gradient(fori, X, pb.Periodic(3, tier=Disk(where)))
    assert list(where.iterdir()) == []
    where.rmdir()


def test_two_processes_share_a_directory(tmp_path):
    where = tmp_path / "here"
    with run(where, "print(flush=True); input(); print(pull(np.ones_like(out))[0].tobytes().hex())") as other:
        other.stdout.readline()  # its folder is there
        expected = gradient(fori, X, pb.Periodic(3, tier=Disk(where)))[0]
        assert expected.tobytes() == gradient(fori, X, pb.SaveAll())[0].tobytes()
        assert len(list(where.iterdir())) == 2  # that of the other is left alone
        told, _ = other.communicate("\n")
        assert told.strip() == expected.tobytes().hex()
    assert list(where.iterdir()) == []
    where.rmdir()


def test_the_end_of_a_program_removes_the_folder(tmp_path):
    where = tmp_path / "here"
    with run(where, "import builtins; builtins.kept = pull") as other:
        assert other.wait() == 0
    assert list(where.iterdir()) == []
    where.rmdir()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python says that a fork of threads is no good idea
def test_a_forked_process_leaves_the_folder_alone(tmp_path):
    out, pull = pb.vjp(fori, X, policy=pb.Periodic(3, tier="disk"))
    assert pull.report.stores  # all is written
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if pull(np.ones_like(out))[0].tobytes() == gradient(fori, X, pb.SaveAll())[0].tobytes() else 2
            pull.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(tmp_path.iterdir())) == 2
    assert bits(pull(np.ones_like(out))) == bits(gradient(fori, X, pb.SaveAll()))
    pull.close()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Disk(3), "directory= takes a path or a URL, got 3"),
        (lambda: Disk(queue=0), "queue= takes how many entries may be in memory on their way, at least 1, got 0"),
        (lambda: Disk(queue=True), "got True"),
        (lambda: Stored(pb.Binomial(2), memory="disk"), r"Stored\(memory=...\) takes a place of .*, got 'disk'"),
        (lambda: Stored("disk"), "Stored takes a policy first, got 'disk'"),
    ],
)
def test_bad_settings(made, message):
    with pytest.raises(pb.PolicyError, match=message):
        made()


@pytest.mark.parametrize("rank", [True, "", "a/b", "a b", 1.5])
def test_what_is_no_rank_is_refused(rank):
    with pytest.raises(pb.PolicyError, match="rank= takes a number, or a name"):
        Disk(rank=rank)


@pytest.mark.parametrize("rank", [7, np.int64(7), "7"])
def test_a_rank_is_in_the_name_of_a_folder(rank, tmp_path):
    _, pull = pb.vjp(fori, X, policy=Stored(pb.Binomial(4), memory=Disk(tmp_path, rank=rank)))
    assert [path.name.split("-")[:2] for path in tmp_path.iterdir() if path.is_dir()] == [["pullback", "rank7"]]
    pull.close()
    assert not list(tmp_path.iterdir())
