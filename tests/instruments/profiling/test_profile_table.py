"""profile: the table, what is measured under each policy, and what is refused."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from attrs import asdict, evolve

import pullback as pb
from pullback.commands.command_line_inputs import load_function
from pullback.instruments.profiling import profile_measurements as measuring
from pullback.instruments.profiling.profile_measurements import peak_rss
from pullback.instruments.profiling.profile_runs import profile
from pullback.instruments.profiling.profile_table import Profile, Row
from pullback.instruments.profiling.seconds import Phases
from pullback.instruments.watching.phases import Spent
from pullback.memory.ledger import mib
from pullback.words.errors import PullbackError, StructureError

N = 30


def growth(x):
    """A loop of N steps with a nonlinear body."""
    return np.sum(pb.fori_loop(0, N, lambda _, u: u + 0.01 * np.sin(u) * u, x))


def row(**changes):
    full = Row(
        policy="SaveAll()",
        snapshots=0,
        n_forward=30,
        recompute_factor=1.0,
        predicted_bytes=3 * 2**20,
        peak_bytes=3 * 2**20,
        bytes_by_reason={"saved": 3 * 2**20},
        rss_bytes=70 * 2**20,
        seconds=0.25,
        forward_seconds=0.1,
        cpu_seconds=0.2,
        ratio=5.0,
        taylor_rate=2.001,
        dot_product_error=1.5e-16,
        same_bits=True,
    )
    return evolve(full, **changes)


BINOMIAL = {
    "policy": "Binomial(3)",
    "snapshots": 3,
    "n_forward": 114,
    "recompute_factor": 3.8,
    "seconds": 0.5,
    "ratio": 10.0,
}

GOLDEN = """\
gradient of growth, by memory policy

                        forward  recompute  peak bytes  peak bytes     RSS   seconds      CPU  Taylor  dot-product  same
policy       snapshots    steps     factor   predicted    measured    peak  measured  x plain    rate        error  bits
------------------------------------------------------------------------------------------------------------------------
SaveAll()            0       30       1.00       3 MiB       3 MiB  70 MiB      0.25     5.00   2.001      1.5e-16   yes
Binomial(3)          3      114       3.80       3 MiB       3 MiB  70 MiB       0.5    10.00   2.001      1.5e-16    NO

one plain forward run: 0.05 s, 0.04 s of the processor
predicted = measured to the byte, for every policy
same bits: compared with SaveAll(), bit for bit
dot-product error: |<w, Jv> - <J'w, v>| / (|w| |Jv|), the largest of three v, with Jv by complex step
None of Binomial(3) holds less than SaveAll().
lines=2 (--lines 2) tells what it costs not to hold what one line makes."""

TRANSPOSED = """\
gradient of growth, by memory policy

policy                SaveAll()  Binomial(3)
--------------------------------------------
snapshots                     0            3
forward steps                30          114
recompute factor           1.00         3.80
peak bytes predicted      3 MiB        3 MiB
peak bytes measured       3 MiB        1 MiB
seconds predicted           0.2          0.4
seconds measured           0.25          0.5
CPU s forward               0.1          0.1
CPU s recompute               0          0.3
CPU s reverse              0.05         0.05
CPU x plain                5.00        10.00
same bits                   yes          yes

one plain forward run: 0.05 s, 0.04 s of the processor
predicted and measured bytes differ for Binomial(3)
same bits: every gradient equals that of SaveAll(), bit for bit
executed again under Binomial(3): sin 84, add 30
not profiled: Budget(1): BudgetError: too little
Binomial(3) holds 1 MiB in the place of 3 MiB, and takes 1.00 times as long as SaveAll()."""


def test_golden_table():
    rows = (row(), row(**BINOMIAL, same_bits=False))
    assert str(Profile("growth", rows, 0.05, "SaveAll()", "complex step", 0.04)) == GOLDEN


def test_golden_transposed_table_shows_only_what_was_measured():
    less = {"rss_bytes": None, "taylor_rate": None, "dot_product_error": None}
    none, again = Spent(), Phases(Spent(0.2, 0.1), Spent(0.4, 0.3), Spent(0.06, 0.05), {"sin": 84, "add": 30})
    rows = (
        row(**less, predicted_seconds=0.2, phases=evolve(again, recompute=none, operations={})),
        row(**BINOMIAL, **less, peak_bytes=2**20, predicted_seconds=0.4, phases=again),
    )
    found = Profile("growth", rows, 0.05, "SaveAll()", None, 0.04, refused=(("Budget(1)", "BudgetError: too little"),))
    assert str(found.table().transposed()) == TRANSPOSED
    with pytest.raises(pb.CheckError, match=r"under every policy: Budget\(1\): BudgetError: too little"):
        found.assert_peak("1 GB")
    found.assert_peak("1 GB", pb.Binomial(3))


def test_every_figure_of_a_loop():
    found = profile(
        growth, np.linspace(0.1, 1.0, 50), policies=[pb.SaveAll(), pb.Recompute(), pb.Binomial(3)], repeat=2
    )
    by_policy = {r.policy: r for r in found.rows}
    assert list(by_policy) == ["SaveAll()", "Recompute()", "Binomial(3)"]
    assert [r.snapshots for r in found.rows] == [0, by_policy["Recompute()"].snapshots, 3]
    assert [r.n_forward for r in found.rows] == [
        r.n_forward for r in (pb.plan(growth, np.ones(50), policy=p) for p in POLICIES)
    ]
    assert by_policy["SaveAll()"].n_forward == N
    # revolve, n = 30 and s = 3: (t + 1) n - C(s + t, t - 1) forward steps with t = 4.
    assert by_policy["Binomial(3)"].n_forward == 5 * N - 35
    assert by_policy["Binomial(3)"].recompute_factor == (5 * N - 35) / N
    for r in found.rows:
        assert r.predicted_bytes == r.peak_bytes == sum(r.bytes_by_reason.values())
        assert r.same_bits
        assert r.ratio == r.cpu_seconds / found.forward_cpu_seconds
        assert 0 < r.forward_seconds < r.seconds
        assert r.taylor_rate is r.dot_product_error is r.rss_bytes is None


POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(3))


def test_plain_code_and_marked_steps_have_a_table_too():
    def marked(x):
        for _ in pb.steps(20):
            x = np.sin(x) * 1.5
        return np.sum(x)

    found = profile(marked, np.linspace(0.1, 1.0, 200), policies=[pb.SaveAll(), pb.Binomial(4)], repeat=1)
    save_all, binomial = found.rows
    assert (save_all.n_forward, save_all.recompute_factor) == (20, 1)
    assert binomial.n_forward > 20
    assert binomial.recompute_factor == binomial.n_forward / 20
    assert binomial.snapshots == 4
    assert binomial.peak_bytes < save_all.peak_bytes
    assert binomial.same_bits
    plain = profile(lambda x: np.sum(np.sin(x)), np.ones(5), policies=[pb.SaveAll(), pb.Binomial(1)], repeat=1)
    assert plain.rows[0].n_forward is plain.rows[0].recompute_factor is None  # no steps
    assert "  -  " in str(plain)


def test_seconds_by_phase_and_what_is_executed_again():
    def marked(x):
        for _ in pb.steps(20):
            x = np.sin(x) * 1.5
        return np.sum(x)

    for f in (growth, marked):
        found = profile(f, np.linspace(0.1, 1.0, 50), policies=[pb.SaveAll(), pb.Binomial(3)], repeat=1)
        save_all, binomial = (r.phases for r in found.rows)
        assert save_all.operations == {}
        assert save_all.recompute.seconds == 0 < binomial.recompute.seconds
        assert min(binomial.forward.cpu_seconds, binomial.reverse.cpu_seconds) > 0
        steps = found.rows[1].n_forward - found.rows[0].n_forward
        assert binomial.operations["sin"] == steps
        assert all(0 < r.predicted_seconds < 10 for r in found.rows)
        assert json.loads(found.to_json())["rows"][1]["phases"]["operations"] == binomial.operations


def test_a_policy_that_refuses_or_fails_half_way_costs_its_row_alone():
    calls = []

    def failing(x):
        calls.append(None)
        if len(calls) > 9:
            raise ValueError("the disk is full")
        return growth(x)

    found = profile(growth, np.ones(50), policies=[pb.Budget(10), pb.SaveAll(), pb.Recompute()], repeat=1)
    assert [r.policy for r in found.rows] == ["SaveAll()", "Recompute()"]
    assert "not profiled: Budget(10): BudgetError: Budget(10) is too little" in str(found)
    found = profile(failing, np.ones(50), policies=[pb.SaveAll(), pb.Binomial(3), pb.Recompute()], repeat=1)
    assert [r.policy for r in found.rows] == ["SaveAll()"]
    assert dict(found.refused)["Recompute()"] == "ValueError: the disk is full"
    with pytest.raises(ValueError, match="disk is full"):
        profile(failing, np.ones(50), policies=[pb.SaveAll(), pb.Binomial(3)], repeat=1)


def test_a_budget():
    found = profile(growth, np.ones(1000), budget="100 kB", repeat=1)
    assert [r.policy for r in found.rows] == ["SaveAll()", "Budget(100000)"]
    assert found.rows[1].peak_bytes <= 100_000


def test_a_loop_of_unknown_length():
    def doubled(x):
        return np.sum(pb.while_loop(lambda u: np.max(u) < 100, lambda u: u + np.sqrt(u), x))

    found = profile(doubled, np.array([1.0, 2.0]), policies=[pb.SaveAll(), pb.Binomial(3)], repeat=1)
    assert found.rows[1].snapshots == 3
    assert all(r.same_bits and r.predicted_bytes == r.peak_bytes for r in found.rows)


def test_a_right_gradient_passes_both_tests():
    found = profile(
        growth,
        np.linspace(0.1, 1.0, 20),
        policies=[pb.SaveAll(), pb.Binomial(2)],
        repeat=1,
        taylor=True,
        dot_product=True,
    )
    assert found.derivative == "complex step"
    assert found.rows[0].taylor_rate == pytest.approx(2, abs=0.1)
    assert found.rows[0].taylor_rate == found.rows[1].taylor_rate
    assert max(r.dot_product_error for r in found.rows) < 1e-14


def test_a_wrong_gradient_fails_both_tests():
    @pb.primitive
    def cube(x):
        return x * x * x

    @cube.vjp("x")
    def _(ct, x):
        return ct * 2.0 * x * x

    found = profile(
        lambda x: np.sum(cube(x)),
        np.array([0.5, 1.5]),
        policies=[pb.SaveAll()],
        repeat=1,
        taylor=True,
        dot_product=True,
    )
    assert found.rows[0].taylor_rate == pytest.approx(1, abs=0.1)
    assert found.rows[0].dot_product_error > 0.1


def test_the_complex_step_is_not_believed_where_it_says_nothing():
    found = profile(
        lambda x: np.sum(np.abs(x) ** 3), np.array([0.5, -1.5]), policies=[pb.SaveAll()], repeat=1, dot_product=True
    )
    assert found.derivative == "central differences"
    assert found.rows[0].dot_product_error < 1e-8


def test_float32_keeps_its_precision_in_the_dot_product_test():
    x = np.linspace(0.1, 1.0, 20, dtype=np.float32)
    found = profile(growth, x, policies=[pb.SaveAll()], repeat=1, dot_product=True)
    assert found.derivative == "complex step"
    assert found.rows[0].dot_product_error < 1e-5


def test_other_bits_are_said():
    calls = []

    def drifting(x):
        calls.append(1)
        return np.sum(np.sin(x) * len(calls))

    found = profile(drifting, np.ones(3), policies=[pb.SaveAll()], repeat=2)
    assert not found.rows[0].same_bits
    assert "NO" in str(found)


def test_vector_outputs_and_structures():
    def both(p):
        return {"a": p["x"] * p["y"], "b": np.cumsum(p["y"])}

    point = {"x": np.ones(4), "y": np.arange(4.0)}
    found = profile(both, point, policies=[pb.SaveAll(), pb.Binomial(1)], repeat=1, dot_product=True)
    assert all(r.same_bits and r.dot_product_error < 1e-14 for r in found.rows)


def test_argnums_counts_from_the_end_and_may_be_several():
    def f(n, x, y):
        return np.sum(x * y) * n

    x, y = np.ones(3), np.arange(3.0)
    several = profile(f, 2, x, y, argnums=(1, -1), policies=[pb.SaveAll()], repeat=1, dot_product=True)
    assert several.rows[0].dot_product_error < 1e-14
    with pytest.raises(StructureError, match=r"argnums=3 of f: the call gives 3 by position"):
        profile(f, 2, x, y, argnums=3)


def test_the_first_policy_is_the_reference_without_save_all():
    found = profile(growth, np.ones(3), policies=[pb.Binomial(2), pb.Binomial(4)], repeat=1)
    assert found.reference == "Binomial(2)"
    assert "equals that of Binomial(2)" in str(found)


def test_nothing_to_do_is_refused():
    with pytest.raises(ValueError, match="needs a policy and a run, got 0 policies and repeat=3"):
        profile(growth, np.ones(3), policies=[])
    with pytest.raises(ValueError, match="got 4 policies and repeat=0"):
        profile(growth, np.ones(3), repeat=0)


def test_progress_counts_to_the_end():
    seen = []
    profile(
        growth, np.ones(3), policies=[pb.Binomial(2)], repeat=2, taylor=True, progress=lambda *part: seen.append(part)
    )
    assert [done for _, done, _ in seen] == [0, 1, 2, 3, 4, 5, 6]
    assert {total for _, _, total in seen} == {6}
    assert seen[1][0] == "Binomial(2): forecast"
    assert seen[-1][0] == "done"


def test_json_keeps_every_figure():
    found = profile(growth, np.ones(3), policies=[pb.Binomial(2)], repeat=1)
    read = json.loads(found.to_json())
    assert read["name"] == "growth"
    assert read["rows"][0] == json.loads(json.dumps(asdict(found.rows[0])))


# ------------------------------------------------------------------------------------------------------- within a block


def test_a_block_observes_the_gradients_within_it():
    x = np.linspace(0.1, 1.0, 50)
    pb.grad(growth)(x)
    with profile() as p:
        pb.grad(growth, policy=pb.Binomial(3))(x)
        pb.value_and_grad(growth)(x)
    pb.grad(growth)(x)
    _, pull = pb.vjp(growth, x)
    pull(1.0)
    assert p.n_passes == 2
    assert p.n_forward == 5 * N - 35 + N
    assert p.seconds > 0
    assert p.peak_bytes == sum(p.bytes_by_reason.values())
    assert (
        0.9 * pull.report.peak_bytes < p.peak_bytes <= pull.report.peak_bytes
    )  # a pull that may be called again holds a little more
    assert str(p).startswith(f"2 reverse passes, {p.n_forward} forward steps, ")


def test_plain_code_within_a_block_is_counted_though_its_tape_is_freed():
    with profile() as p:
        pb.grad(lambda x: np.sum(np.sin(np.exp(x))))(np.ones(1000))
    assert p.peak_bytes == 8000  # exp saves its output, which is the array that sin saves
    assert set(p.bytes_by_reason) == {"saved"}


def test_blocks_nest_and_end_with_an_error():
    def fails():
        with profile() as inner:
            pb.grad(np.sin)(1.0)
            raise ZeroDivisionError(str(inner.n_passes))

    with profile() as outer:
        with pytest.raises(ZeroDivisionError, match=r"^1$"):
            fails()
        pb.grad(np.sin)(1.0)
    assert outer.n_passes == 2
    assert str(profile()) == "0 reverse passes, 0 forward steps, 0 s; the largest held 0 B (nothing)"


# ------------------------------------------------------------------------------------------------------------------ RSS


def written(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text, "utf-8")
    return path


TALKATIVE = """
import numpy as np
def f(x):
    print("a word")
    for _ in range(40):
        x = np.sin(x)
    return np.sum(x)
"""


def test_rss_is_read_in_a_process_of_its_own(tmp_path):
    path = written(tmp_path, TALKATIVE)
    pytest.importorskip("memory_profiler", reason="the figure is memory-profiler's")
    found = profile(load_function(f"{path}:f"), np.ones(2**18), policies=[pb.SaveAll()], repeat=1, rss=True)
    held = found.rows[0].peak_bytes
    assert held >= 40 * 2**21
    assert held < found.rows[0].rss_bytes < held + 2**30


def test_rss_needs_a_function_that_travels():
    program = measuring.make_program(lambda x: x @ x, (np.ones(3),), 0)
    with pytest.raises(
        PullbackError, match=r"<lambda> with its arguments cannot be pickled.*define it at the top level of a module"
    ):
        peak_rss(program, pb.SaveAll())


def test_a_failure_in_the_other_process_is_told(tmp_path):
    path = written(tmp_path, "def f(x):\n    raise ValueError('no such luck')\n")
    program = measuring.make_program(load_function(f"{path}:f"), (np.ones(3),), 0)
    with pytest.raises(PullbackError, match=r"ended with status 1 \(ValueError: no such luck\)"):
        peak_rss(program, pb.SaveAll())


def test_what_cannot_be_sent_loses_only_its_rss(monkeypatch):
    found = profile(lambda x: np.sum(x * x), np.ones(3), policies=pb.SaveAll(), repeat=1, rss=True)
    assert found.rows[0].rss_bytes is None
    assert "no peak RSS: <lambda> with its arguments cannot be pickled" in str(found)
    monkeypatch.setattr(growth, "__module__", "__main__")
    found = profile(growth, np.ones(3), policies=pb.SaveAll(), repeat=1, rss=True)
    assert "no peak RSS: growth is defined in a script or notebook" in str(found)
    monkeypatch.setattr(measuring, "find_spec", lambda name: None)
    found = profile(growth, np.ones(3), policies=pb.SaveAll(), repeat=1, rss=True)
    assert "memory-profiler reads it, which is missing: install pullback[demo]" in str(found)


def test_one_policy_and_keyword_arguments():
    found = profile(lambda x, *, power: np.sum(x**power), np.arange(1.0, 4.0), policies="auto", repeat=1, power=3)
    assert [r.policy for r in found.rows] == ['"auto"']
    assert found.rows[0].peak_bytes > 0


def test_a_peak_is_asserted():
    found = profile(growth, np.ones(50), policies=[pb.SaveAll(), pb.Binomial(3)], repeat=1)
    found.assert_peak("1 MB")
    found.assert_peak(found.rows[1].peak_bytes, pb.Binomial(3))
    said = r"growth under SaveAll\(\) held 24,400 bytes at the peak, 14,400 more .* \(.*saved .*\); .*budget=10000\)"
    with pytest.raises(AssertionError, match=said):
        found.assert_peak("10 kB")
    with pytest.raises(pb.PolicyError, match=r"was not profiled; pass one of SaveAll\(\), Binomial\(3\)"):
        found.assert_peak("1 MB", pb.Recompute())
    with pb.profile() as watch:
        pb.grad(growth)(np.ones(50))
    watch.assert_peak("1 MB")
    with pytest.raises(pb.CheckError, match=r"a reverse pass held .* more than the 1,000 that are allowed"):
        watch.assert_peak(1000)


def test_a_function_of_a_file_travels_by_its_place(tmp_path):
    found = load_function(f"{written(tmp_path, 'def f(x):' + chr(10) + '    return 2 * x')}:f")
    again = pickle.loads(pickle.dumps(found))  # noqa: S301  written here
    assert again(21) == 42
    assert again.__name__ == "f"


def test_a_block_that_fails_half_way_tells_of_what_came_before():
    def failing(x):
        return np.sum(pb.fori_loop(0, N, lambda k, u: u * np.sin(u) if k < 20 else 1 / 0, x))

    def block():
        with watch:
            pb.grad(growth, policy=pb.Binomial(3))(np.ones(5))
            pb.grad(failing, policy=pb.Recompute())(np.ones(5))

    watch = pb.profile()
    with pytest.raises(ZeroDivisionError):
        block()
    assert watch.n_passes == 1
    assert watch.interrupted.n_forward == 20
    assert watch.interrupted.peak_bytes > 0
    assert "; one was interrupted: peak" in str(watch)
    with pb.profile() as fine:
        pb.grad(growth)(np.ones(5))
    assert fine.interrupted is None


def test_it_answers_which_line_holds_the_memory_and_what_it_costs_not_to():
    def loop(x):
        for _ in pb.steps(20):
            x = x + 0.1 * np.sin(x) * x  # two values of a step are read by pullbacks
        return np.sum(x)

    found = profile(loop, np.ones(1000), policies=[pb.SaveAll(), pb.Binomial(3)], lines=3, repeat=1)
    line = f"test_profile_table.py:{loop.__code__.co_firstlineno + 2}"
    assert [r.policy for r in found.rows] == ["SaveAll()", "Binomial(3)", f"without {line}"]
    save_all, binomial, without = found.rows
    assert without.peak_bytes == without.predicted_bytes < save_all.peak_bytes
    assert without.same_bits
    assert found.held_by == ((line, save_all.peak_bytes - 8000), ("no line", 8000))  # the argument's own memory
    first, second, third = found.answer
    assert first.startswith(f"{line} holds ")
    assert first.endswith(", 98% of the 312 KiB that are saved under SaveAll().")
    assert second.startswith(f"Binomial(3) holds {mib(binomial.peak_bytes)} in the place of 312 KiB, and takes ")
    assert third.startswith(f"Where all is held but what {line} makes, that is {mib(without.peak_bytes)} in the place")
    assert str(found).endswith("\n".join(found.answer))
    assert found.to_dict()["answer"] == found.answer
    plain = profile(lambda x: np.sum(np.sin(np.exp(x))), np.ones(1000), policies=pb.SaveAll(), lines=1, repeat=1)
    assert plain.answer[-1].startswith("What test_profile_table.py:")
    assert plain.answer[-1].endswith(" makes is needed at once: computing it again leaves no less at the peak.")
    with pytest.raises(ValueError, match="lines >= 0, got -1"):
        profile(loop, np.ones(3), lines=-1)


def test_a_timeline_for_each_policy():
    found = profile(growth, np.ones(50), policies=[pb.SaveAll(), pb.Binomial(3)], timeline=True, repeat=1)
    for row in found.rows:
        assert row.timeline.peak.nbytes == row.peak_bytes
        assert {reason: n for reason, n in row.timeline.peak.held.items() if n} == row.bytes_by_reason
        assert f"{row.policy}: {row.timeline}" in str(found)
    plain = json.loads(found.to_json())["rows"][1]["timeline"]
    assert set(plain["phase"]) == {"forward", "recompute", "reverse"}
    assert max(map(sum, zip(*plain["held"].values(), strict=True))) == found.rows[1].peak_bytes
    assert (
        json.loads(profile(growth, np.ones(50), policies=pb.SaveAll(), repeat=1).to_json())["rows"][0]["timeline"]
        is None
    )


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)])
def test_the_error_of_a_function_that_fails_half_way_tells_what_was_held_until_then(policy):
    def fails(x):
        for k in pb.steps(10):
            x = np.sin(x)
            if k == 5:
                raise RuntimeError("half way")
        return np.sum(x)

    for lines in (0, 1):
        with pytest.raises(RuntimeError, match="half way") as caught:
            pb.profile(fails, np.ones(1000), policies=policy, repeat=1, lines=lines)
        (note,) = caught.value.__notes__
        held = r"peak \d\d\.\d KiB after .* s, forward.*: .*saved \d"
        first = fails.__code__.co_firstlineno
        line = rf"; most of it by test_profile_table.py:({first + 2}|{first + 4}): \d"
        assert re.match(rf"until it failed, fails held under {re.escape(repr(policy))}: {held}.*{line}", note)


def test_where_no_policy_holds_less_the_answer_says_so():
    def plain(x):
        return np.sum(np.sin(x) * np.exp(x))

    found = profile(plain, np.ones(50), policies=[pb.SaveAll(), pb.Recompute()], repeat=1)
    assert found.answer[1:] == (
        "None of Recompute() holds less than SaveAll().",
        "lines=2 (--lines 2) tells what it costs not to hold what one line makes.",
    )
    found = profile(plain, np.ones(50), policies=[pb.SaveAll(), pb.Recompute()], repeat=1, lines=1)
    assert [text.split()[0] for text in found.answer[1:]] == ["None", "What"]


def test_lines_that_make_next_to_nothing_are_not_tried():
    def f(x):
        y = np.sin(x)
        z = np.sin(x[:1])
        return np.sum(y * y * z)

    held = profile(f, np.ones(1000), policies=[pb.SaveAll()], repeat=1, lines=5)
    lines = [row.without_line.rsplit(":")[1] for row in held.rows[1:]]
    assert str(f.__code__.co_firstlineno + 1) in lines
    assert str(f.__code__.co_firstlineno + 2) not in lines


def test_figures_of_a_block_show_in_a_notebook():
    with pb.profile() as p:
        pb.grad(lambda x: np.sum(x * x))(np.ones(3))
    assert "1 reverse pass" in p._repr_html_()
