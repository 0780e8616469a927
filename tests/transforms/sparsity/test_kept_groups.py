"""Patterns kept between calls: used while the program is what it was, never for another one."""

import numpy as np
import pytest

import pullback as pb
from pullback.transforms.sparsity import kept_groups

X = np.random.default_rng(0).standard_normal(12)
WIDE, NARROW = np.array([[0, 1], [2, 3], [4, 5]]), np.array([[0, 0], [2, 2], [4, 4]])


def counted(monkeypatch):
    runs = []
    follow = kept_groups.follow
    monkeypatch.setattr(kept_groups, "follow", lambda *args: (runs.append(1), follow(*args))[1])
    return runs


def same(found, f, *args):
    np.testing.assert_allclose(found.toarray(), pb.jacobian(f)(*args).reshape(found.shape), rtol=1e-12, atol=1e-14)


def burgers(u):
    out = np.zeros_like(u)
    out[1:-1] = u[1:-1] * (u[2:] - u[:-2])
    out[0] += np.sum(u[-2:])
    return out


def several(u):
    fraction, whole = np.modf(u)
    return np.where(u > 10.0, u[::-1], fraction) + whole, np.cumsum(np.sort(u)[:3])


def loop(u):
    return pb.fori_loop(0, 3, lambda k, v: v + 0.1 * np.roll(v, 1), u)


PROGRAMS = {
    "writes": burgers,
    "several": lambda u: np.concatenate(several(u)),
    "loop": loop,
    "product": lambda u: np.eye(3, 12) @ u,
    "fancy": lambda u: u[WIDE].sum(axis=1),
    "scalar": lambda u: u[0] * u[1],
}


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_stays_is_followed_once(monkeypatch, name, mode):
    runs, f = counted(monkeypatch), PROGRAMS[name]
    jacobian = pb.sparse_jacobian(f, mode=mode)
    for k in range(4):
        x = X + 0.01 * k  # no element passes another, nor 0
        same(jacobian(x), f, x)
    assert len(runs) == 1


def test_other_shapes_and_dtypes_have_patterns_of_their_own(monkeypatch):
    runs = counted(monkeypatch)
    jacobian = pb.sparse_jacobian(burgers)
    for _ in range(2):
        for x in (X, X[:5].copy(), X.astype(np.float32)):
            assert jacobian(x).dtype == x.dtype
            if x.dtype == float:
                same(jacobian(x), burgers, x)
    assert len(runs) == 3


def test_no_more_than_a_few_are_kept(monkeypatch):
    runs = counted(monkeypatch)
    jacobian = pb.sparse_jacobian(np.sin)
    for n in (*range(1, kept_groups.KEPT + 3), 1):
        jacobian(np.ones(n))
    assert len(runs) == kept_groups.KEPT + 3


class Switch:
    """What a program reads besides its argument."""

    value: object = None


def switched(make):
    switch = Switch()
    return switch, lambda u: make(switch.value, u)


CHANGES = {
    "a branch": (lambda on, u: u * u[::-1] if on else u * u, (False, True)),
    "an index": (lambda key, u: u[key] * u[0], (slice(0, 4), slice(1, 5))),
    "an index array": (lambda key, u: u[key].sum(axis=1), (NARROW, WIDE)),
    "a key of a write": (lambda key, u: written(u, key), (slice(0, 2), slice(3, 5))),
    "added or set": (lambda add, u: written(u, slice(0, 2), add=add), (False, True)),
    "a parameter": (lambda shift, u: u + np.roll(u, shift), (1, 2)),
    "a condition": (lambda on, u: np.where(on, u, u[::-1]), (X > 0, X < 0)),
    "a matrix": (lambda matrix, u: matrix @ u, (np.eye(12), np.eye(12, k=1))),
    "a matrix with a new entry": (lambda matrix, u: matrix @ u, (np.eye(12), np.eye(12) + np.eye(12, k=5))),
    "an operand": (lambda k, u: np.sin(u) * (u, u[::-1])[k], (0, 1)),
    "the order of results": (lambda k, u: (u[:3], u[3:5], u[5:])[:: 1 if k else -1], (0, 1)),
    "the number of steps": (lambda n, u: pb.fori_loop(0, n, lambda _, v: v + np.roll(v, 1), u), (1, 2)),
    "a longer program": (lambda n, u: (u, np.roll(u, 1))[n > 0] if n < 2 else np.roll(u, 1) + u, (0, 1, 2)),
    "an axis": (lambda axis, u: np.sum(u.reshape(3, 4)[:, :3], axis=axis), (0, 1)),
}


def written(u, key, *, add=False):
    out = u * 1.0
    if add:
        out[key] += u[-1]
    else:
        out[key] = u[-1]
    return out


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_program_that_changes_is_followed_anew(monkeypatch, name, mode):
    make, values = CHANGES[name]
    switch, f = switched(make)
    runs = counted(monkeypatch)
    jacobian = pb.sparse_jacobian(f, mode=mode, check=False)
    sequence = (*values, *values[::-1])
    for value in sequence:
        switch.value = value
        fresh = pb.sparse_jacobian(f, mode=mode)(X)
        found = jacobian(X)
        np.testing.assert_array_equal(found.toarray(), fresh.toarray())
        assert found.nnz == fresh.nnz
    assert len(runs) == len(sequence) + 2 * len(values) - 1  # the last of one half is the first of the other


def test_a_branch_on_values_is_seen(monkeypatch):
    f = lambda u: u * u[::-1] if pb.value(u)[0] > 0 else np.cumsum(u)  # noqa: E731
    jacobian = pb.sparse_jacobian(f)
    for x in (X, -X, X, -X):
        same(jacobian(x), f, x)


def test_an_array_that_is_changed_in_place_is_seen():
    """The object is the same, what it holds is not."""
    matrix, key = np.eye(12), np.arange(12)
    f = lambda u: (matrix @ u) * u[key]  # noqa: E731
    jacobian = pb.sparse_jacobian(f, check=False)
    same(jacobian(X), f, X)
    matrix[3, 7] = 2.0
    same(jacobian(X), f, X)
    key[:] = key[::-1].copy()
    same(jacobian(X), f, X)


def test_a_parameter_that_cannot_be_told_is_followed_each_time(monkeypatch):
    class Shift:
        by = 1

    moved = pb.primitive(
        lambda x, shift: np.roll(x, shift.by), name="moved", operands=("x",), params=("shift",), linear=("x",),
        vjps={"x": lambda ct, shift: np.roll(ct, -shift.by)},
    )  # fmt: skip
    shift, runs = Shift(), counted(monkeypatch)
    f = lambda u: moved(u, shift=shift) * u  # noqa: E731
    jacobian = pb.sparse_jacobian(f, check=False)
    for by in (1, 2, 2):
        shift.by = by
        same(jacobian(X), f, X)
    assert len(runs) == 3


def test_a_solution_is_followed_each_time(monkeypatch):
    runs = counted(monkeypatch)
    matrix = np.diag(np.full(12, 2.0))
    f = lambda u: pb.custom_linear_solve(lambda x: matrix @ x, u, lambda _, b: np.linalg.solve(matrix, b))  # noqa: E731
    jacobian = pb.sparse_jacobian(f)
    assert jacobian(X).nnz == 12
    matrix[0, 1] = 1.0
    assert jacobian(X).nnz == 14  # unknowns 0 and 1 are coupled
    assert len(runs) == 2


def test_a_given_structure_keeps_its_colours(monkeypatch):
    found = []
    group = kept_groups.groups_of_columns
    monkeypatch.setattr(kept_groups, "groups_of_columns", lambda pattern: (found.append(1), group(pattern))[1])
    pattern = np.eye(12, dtype=bool)
    jacobian = pb.sparse_jacobian(lambda u: u * u[::-1], mode="forward", structure=pattern, check=False)
    jacobian(X)
    jacobian(X)
    assert len(found) == 1
    pattern |= pattern[::-1]  # the user's own array
    same(jacobian(X), lambda u: u * u[::-1], X)
    assert len(found) == 2


def test_reverse_takes_columns_where_rows_are_many(monkeypatch):
    """A column that every row reads costs a pull for each row, or one tangent."""
    pulls = []
    vjp = pb.vjp
    monkeypatch.setattr(
        "pullback.transforms.sparsity.sparse_jacobians.vjp", lambda *args, **kw: (pulls.append(1), vjp(*args, **kw))[1]
    )
    x = np.random.default_rng(1).standard_normal(200)
    f = lambda u: u[1:] * u[0]  # noqa: E731
    for policy, count in ((None, 0), (pb.Binomial(2), 1)):
        pulls.clear()
        found = pb.sparse_jacobian(f, mode="reverse", policy=policy)(x)
        assert len(pulls) == count
        same(found, f, x)
        assert found.nnz == 2 * 199
    with pb.using(pb.Binomial(2)):
        pb.sparse_jacobian(f, mode="reverse")(x)
    assert len(pulls) == 2
