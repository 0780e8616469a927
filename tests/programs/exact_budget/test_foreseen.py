"""Programs that are known to take little of a budget are recorded as under save-all, until they do more than before."""


import numpy as np
import pytest
from tests.programs.measured import peak_of

import pullback as pb
from pullback.programs.exact_budget import foreseen
from pullback.programs.plain.plain_code import PlainCode

X = np.linspace(0.2, 0.9, 10_000)
SLACK = 64 * 1024


@pytest.fixture(autouse=True)
def nothing_known():
    foreseen.forget()
    yield
    foreseen.forget()


@pytest.fixture
def governed(monkeypatch):
    """The records of which a governor was told."""
    found = []
    before_record = PlainCode.before_record

    def told(self, record, *rest):
        found.append(record[0])
        return before_record(self, record, *rest)

    monkeypatch.setattr(PlainCode, "before_record", told)
    return found


def repeated(n, steps=range):
    """A program of n steps: its code is one for all n."""

    def f(x):
        for _ in steps(n[0]):
            x = np.sin(x) * x + 0.1
        return np.sum(x)

    return f


@pytest.mark.parametrize("steps", [range, pb.steps])
@pytest.mark.parametrize("exact", [False, True])
def test_a_later_call_is_not_governed(governed, exact, steps):
    f = repeated([5], steps)
    gradient = pb.value_and_grad(f, policy=pb.Budget("20 MB", exact=exact))
    wanted = pb.value_and_grad(f)(X)
    for n_governed in (True, False, False):
        governed.clear()
        value, found = gradient(X)
        assert (value, found.tobytes()) == (wanted[0], wanted[1].tobytes())
        assert bool(governed) is n_governed
    gradient(X[:100])
    assert governed


@pytest.mark.parametrize("exact", [False, True])
def test_half_of_the_bytes_stay_free(governed, exact):
    gradient = pb.grad(repeated([5]), policy=pb.Budget("5 MB", exact=exact))
    for _ in range(3):
        governed.clear()
        gradient(X)
        assert governed


@pytest.mark.parametrize("steps", [range, pb.steps])
@pytest.mark.parametrize(("longer", "exact"), [(6, False), (40, False), (200, False), (6, True), (40, True)])
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_a_longer_run_is_governed_from_there_on_and_binds(governed, longer, exact, steps):
    n = [6]
    f = repeated(n, steps)
    gradient = pb.grad(f, policy=pb.Budget("12 MB", exact=exact))
    gradient(X)
    governed.clear()
    gradient(X)
    assert not governed
    n[0] = longer
    found, peak = peak_of(gradient, X)
    assert bool(governed) is (longer > 6)
    assert peak <= 12_000_000 + SLACK
    assert found.tobytes() == pb.grad(f)(X).tobytes()
    assert pb.grad(f, policy=pb.Budget("1 GB", exact=exact))(X).tobytes() == found.tobytes()


def test_larger_values_are_noticed(governed):
    repeats = [1]

    def f(x):
        x = np.concatenate([x] * repeats[0])
        for _ in range(40):
            x = np.sin(x) * x
        return np.sum(x)

    gradient = pb.grad(f, policy=pb.Budget("4 MB"))
    gradient(X[:100])
    governed.clear()
    gradient(X[:100])
    assert not governed
    repeats[0] = 90
    assert gradient(X[:100]).tobytes() == pb.grad(f)(X[:100]).tobytes()
    assert governed


TABLE = np.ones(1)


@pytest.mark.parametrize("exact", [False, True])
def test_a_global_array_of_another_size_is_noticed_at_once(governed, monkeypatch, exact):
    def f(x):
        x = x * TABLE
        for _ in range(40):
            x = np.sin(x) * x
        return np.sum(x)

    budget = 16 * X.nbytes
    gradient = pb.grad(f, policy=pb.Budget(budget, exact=exact))
    for _ in range(2):
        governed.clear()
        gradient(X[:1])
    assert not governed
    monkeypatch.setitem(globals(), "TABLE", np.ones(len(X)))
    wanted = pb.grad(f)(X[:1])
    found, peak = peak_of(gradient, X[:1])
    assert found.tobytes() == wanted.tobytes()
    assert peak <= budget + SLACK


@pytest.mark.parametrize("policy", [None, pb.Recompute()])
def test_a_checkpoint_is_part_of_what_is_known(governed, policy):
    n = [3]

    def f(x):
        for _ in range(n[0]):
            x = pb.checkpoint(lambda u: np.sin(u) * u + 0.1, policy=policy if n[0] > 3 else None)(x)
        return np.sum(x)

    gradient = pb.grad(f, policy=pb.Budget(100 * X.nbytes))
    for known in (False, True, True):
        governed.clear()
        gradient(X)
        assert bool(governed) is not known
    n[0] = 5  # more, and perhaps by another policy
    wanted = pb.grad(f)(X)
    governed.clear()
    assert gradient(X).tobytes() == wanted.tobytes()
    assert governed


def test_a_captured_array_of_another_size_makes_another_program(governed):
    def times(table):
        return lambda x: np.sum(np.sin(x[0] * table) * table)

    for n, known in ((10, False), (10, True), (20, False)):
        governed.clear()
        pb.grad(times(np.ones(n)), policy=pb.Budget("100 MB"))(X)
        assert bool(governed) is not known


def test_what_has_checkpoints_of_their_own_stays_governed(governed):
    def kept(x):
        for _ in pb.steps(4):
            x = x * 2
        return np.sum(pb.checkpoint(np.sin, policy=pb.Recompute())(x))

    gradient = pb.grad(kept, policy=pb.Budget("1 GB"))
    for _ in range(3):
        governed.clear()
        assert gradient(X).tobytes() == pb.grad(kept)(X).tobytes()
        assert governed


@pytest.fixture
def chains(monkeypatch):
    """The names of the stretches of code that a policy cuts into steps."""
    found = []
    begin = PlainCode.begin

    def told(self, n, policy, *rest, name="steps", **others):
        found.append(name)
        return begin(self, n, policy, *rest, name=name, **others)

    monkeypatch.setattr(PlainCode, "begin", told)
    return found


def looped(n, size):
    def f(x):
        u = pb.fori_loop(0, n[0], lambda k, u: np.sin(u) * u, x * np.ones(size[0]))
        return np.sum(np.cos(u) * np.exp(u))

    return f


@pytest.mark.parametrize("policy", [pb.Budget("1 GB"), "auto"], ids=repr)
def test_a_loop_that_takes_little_is_save_all_and_part_of_what_is_known(governed, chains, policy):
    f = looped([50], [1000])
    gradient = pb.grad(f, policy=policy)
    for n_governed in (True, False, False):
        governed.clear()
        chains.clear()
        assert gradient(1.3).tobytes() == pb.grad(f)(1.3).tobytes()
        assert (len(governed) > 3) is n_governed  # step 0 of the loop is, always: its two operations
        assert not chains or n_governed
    _, pull = pb.vjp(f, 1.3, policy=policy)
    assert pull.report.n_forward == 50


def test_a_loop_that_grows_is_governed_and_so_is_what_follows_it(chains):
    n, size = [3], [10]
    f = looped(n, size)
    gradient = pb.grad(f, policy=pb.Budget("6 MB"))
    for known in (False, True):
        chains.clear()
        gradient(1.3)
        assert bool(chains) is not known
    for n[0], size[0] in ((2000, 10), (3, 10), (400, 5000)):
        wanted = pb.grad(f)(1.3)
        chains.clear()
        found, peak = peak_of(gradient, 1.3)
        assert bool(chains) is (n[0] > 3)
        assert found.tobytes() == wanted.tobytes()
        assert peak <= 6_000_000 + SLACK


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_marked_steps_that_grow_are_governed_from_there_on_and_bind(governed):
    times = [1]

    def f(x):
        for k in pb.steps(60):
            if k == 20:
                x = np.concatenate([x] * times[0])
            x = np.sin(x) * x
        for _ in pb.steps(30):
            x = np.cos(x) * x
        return np.sum(x)

    gradient = pb.grad(f, policy=pb.Budget("6 MB"))
    for known in (False, True):
        governed.clear()
        gradient(X[:100])
        assert bool(governed) is not known
    times[0] = 100
    wanted = pb.grad(f)(X[:100])
    found, peak = peak_of(gradient, X[:100])
    assert governed
    assert found.tobytes() == wanted.tobytes()
    assert peak <= 6_000_000 + SLACK


def test_the_report_is_that_of_the_policy():
    gradient = pb.grad(repeated([20]), policy=pb.Budget("100 MB"))
    reports = []
    for _ in range(3):
        gradient(X)
        _, pull = pb.vjp(repeated([20]), X, policy=pb.Budget("100 MB"))
        pull(1.0)
        reports.append(pull.report)
        pull.close()
    assert reports[0].n_forward == reports[2].n_forward > 0


def test_an_error_in_the_program_leaves_nothing():
    n = [3]

    def f(x):
        for _ in range(n[0]):
            x = np.sin(x)
        if n[0] == 4:
            raise ValueError("no")
        return np.sum(x)

    gradient = pb.grad(f, policy=pb.Budget("100 MB"))
    wanted = gradient(X)
    gradient(X)
    n[0] = 4
    with pytest.raises(ValueError, match="no"):
        gradient(X)
    n[0] = 3
    assert gradient(X).tobytes() == wanted.tobytes()
