"""The decompositions: every primitive by pullback's checker, every function and option against NumPy and against
differences."""

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback_linalg.cholesky import CHOLESKY, cholesky
from pullback_linalg.eigen import EIGEN, eig, eigh, eigvals, eigvalsh
from pullback_linalg.orthogonal import ORTHOGONAL, qr, qr_r, qr_raw
from pullback_linalg.singular import SINGULAR, svd, svd_hermitian, svdvals
from pullback_linalg.triangular import LARGE, TRIANGULAR, triangular_solve


@frozen
class Case:
    """A primitive with operands and parameters for check_primitive; ``symmetric``: as a function of the Hermitian
    part of its operand."""

    primitive: pb.Primitive
    operands: tuple
    params: dict
    symmetric: bool = False

    def __str__(self):
        kinds = " ".join(f"{np.dtype(x.dtype).char}{x.shape}" for x in self.operands)
        return f"{self.primitive.name} {kinds} {' '.join(f'{k}={v}' for k, v in self.params.items())}"


def array(*shape, dtype="f8", seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def hermitian_part(x):
    return (x + x.conj().swapaxes(-1, -2)) / 2


def hermitian(*shape, dtype="f8"):
    """Hermitian, with eigenvalues of both signs that are apart."""
    x = array(*shape, dtype=dtype, seed=1) / 4
    return hermitian_part(x + np.diag(np.linspace(-1, 2, shape[-1]) ** 3)).astype(dtype)


def positive(*shape, dtype="f8"):
    x = array(*shape, dtype=dtype, seed=2)
    return (x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def as_function_of_symmetric(primitive):
    """The same primitive, rules and all, of the Hermitian part of its operand: there the Hermitian cotangent is the
    whole derivative."""

    def reading(rule):
        place = rule.reads.index("a") if "a" in rule.reads else -1

        def read(ct, *values):
            return rule.fn(ct, *(hermitian_part(v) if k == place else v for k, v in enumerate(values)))

        return read

    twin = pb.primitive(
        lambda a, **params: primitive.forward(hermitian_part(a), **params),
        name=f"symmetric {primitive.name}", operands=("a",), params=primitive.params, outputs=primitive.outputs,
        residuals=primitive.residuals,
    )  # fmt: skip
    for rule in primitive.rules["a"]:
        twin.vjp("a", saves=rule.reads, fn=reading(rule))
    return twin


TALL_AND_WIDE = [(3, 3), (4, 3), (3, 4), (4, 2), (2, 4), (2, 3, 2), (2, 1, 1, 2), (1, 1), (2, 1)]
KINDS = ["f8", "c16", "f4", "c8"]
EMPTY = [(0, 0), (0, 3), (3, 0), (0, 2, 2)]
SQUARE = [(3, 3), (2, 2, 2), (2, 2)]
TRIANGLE = array(3, 3, seed=4) + 4 * np.eye(3)


def _cases():
    for dtype in KINDS:
        shapes = {"f8": TALL_AND_WIDE, "c16": TALL_AND_WIDE[1:6]}.get(dtype, [(3, 2), (2, 3)])
        for shape in [*shapes, *(EMPTY if dtype in {"f8", "c16"} else [])]:
            a = array(*shape, dtype=dtype)
            yield from (Case(qr, (a,), {"mode": mode}) for mode in ("reduced", "complete"))
            yield from (
                Case(qr_r, (a,), {}),
                Case(svd, (a,), {"full_matrices": False}),
                Case(svdvals, (a,), {"hermitian": False}),
            )
            if shape[-2] > 1:  # of one row h is the row, which needs not be kept
                yield Case(qr_raw, (a,), {})
        for shape in SQUARE if dtype in {"f8", "c16"} else SQUARE[-1:]:
            a, s, p = array(*shape, dtype=dtype), hermitian(*shape, dtype=dtype), positive(*shape, dtype=dtype)
            yield from (Case(eig, (a,), {}), Case(eigvals, (a,), {}))
            yield from (Case(cholesky, (p,), {"upper": upper}, symmetric=True) for upper in (False, True))
            yield from (Case(eigh, (s,), {"uplo": uplo}, symmetric=True) for uplo in "LU")
            yield from (Case(eigvalsh, (s,), {"uplo": uplo}, symmetric=True) for uplo in "LU")
            yield from (
                Case(svd_hermitian, (s,), {}, symmetric=True),
                Case(svdvals, (s,), {"hermitian": True}, symmetric=True),
            )
        for lower in (False, True):
            for transpose in (False, True):
                t, b = (TRIANGLE + 0 * array(3, 3, dtype=dtype)).astype(dtype), array(3, 2, dtype=dtype)
                params = {"lower": lower, "transpose": transpose}
                yield Case(triangular_solve, (t, b), params)
                yield Case(triangular_solve, (np.stack([t, 2 * t]), np.stack([b, b])), params)
    for shape in [(0, 0), (0, 2, 2)]:
        for nothing in (np.zeros(shape), np.zeros(shape, complex)):
            yield from (Case(p, (nothing,), {}) for p in (eig, eigvals, cholesky, svd_hermitian))
            yield from (Case(p, (nothing,), {"uplo": "L"}) for p in (eigh, eigvalsh))
    for shape in [(4, 3), (3, 4)]:  # one more column: its sign alone is open
        yield Case(svd, (array(*shape),), {"full_matrices": True})
    yield Case(cholesky, (positive(1, 1),), {"upper": False}, symmetric=True)
    for transpose in (False, True):  # large enough for LAPACK's triangular solver
        t, b = TRIANGLE[0, 0] * np.eye(LARGE) + array(LARGE, LARGE) / 10, array(LARGE, 1)
        yield Case(triangular_solve, (t, b), {"lower": transpose, "transpose": transpose})


CASES = tuple(_cases())


@pytest.mark.share(20)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_declaration_is_right(case):
    primitive = as_function_of_symmetric(case.primitive) if case.symmetric else case.primitive
    pb.testing.check_primitive(primitive, *case.operands, **case.params)


def test_every_primitive_has_a_case():
    declared = {
        entry.name
        for entry in (*TRIANGULAR, *CHOLESKY, *EIGEN, *SINGULAR, *ORTHOGONAL)
        if isinstance(entry, pb.Primitive)
    }
    assert declared == {case.primitive.name for case in CASES}


# ---------------------------------------------------------------------------------------- NumPy's functions and options
A, Z, TALL, WIDE = array(3, 3), array(3, 3, dtype="c16"), array(4, 2), array(2, 4, dtype="c16")
S, SZ, P, PZ = hermitian(3, 3), hermitian(3, 3, dtype="c16"), positive(3, 3), positive(3, 3, dtype="c16")
STACK, STACKZ = array(2, 3, 2), hermitian(2, 3, 3, dtype="c16")


def matrix_exponential(a):
    w, v = np.linalg.eigh(hermitian_part(a))
    return (v * np.exp(w)) @ v.conj().T


def full_and_tall(a):
    u, s, vh = np.linalg.svd(a)
    return u[:, 2:] @ u[:, 2:].T, s, vh, u[:, :2]


def full_and_wide(a):
    u, s, vh = np.linalg.svd(a)
    return vh[2:].conj().T @ vh[2:], s, u


# Each result is one that does not depend on a choice of basis; eigh and its kin are given the Hermitian part of what is
# moved.
ROWS = {
    "cholesky": (lambda a: np.linalg.cholesky(hermitian_part(a)), P),
    "cholesky upper": (lambda a: np.linalg.cholesky(hermitian_part(a), upper=True), PZ),
    "cholesky of a stack": (lambda a: np.linalg.cholesky(hermitian_part(a)), positive(2, 3, 3)),
    "eigh": (lambda a: np.linalg.eigh(hermitian_part(a)), S),
    "eigh by keyword": (lambda a: np.linalg.eigh(a=hermitian_part(a), UPLO="u"), SZ),
    "eigh values": (lambda a: np.linalg.eigh(hermitian_part(a)).eigenvalues, SZ),
    "eigh vectors": (lambda a: np.linalg.eigh(hermitian_part(a), "U").eigenvectors, STACKZ),
    "eigh of one triangle": (lambda a: np.linalg.eigh(a, "L"), S + np.triu(A, 1)),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(hermitian_part(a)), STACKZ),
    "eigvalsh U": (lambda a: np.linalg.eigvalsh(hermitian_part(a), UPLO="U"), SZ),
    "a matrix function": (matrix_exponential, SZ),
    "eig real with complex eigenvalues": (np.linalg.eig, array(4, 4, seed=7)),
    "eig complex": (np.linalg.eig, Z),
    "eig real eigenvalues": (np.linalg.eig, np.diag([1.0, 2.0, 4.0]) + A / 20),
    "eig of a stack": (np.linalg.eig, array(2, 3, 3, dtype="c16")),
    "eigvals": (np.linalg.eigvals, array(4, 4, seed=7)),
    "eigvals of a stack": (np.linalg.eigvals, array(2, 4, 4, seed=7)),
    "eigvals of 8": (np.linalg.eigvals, array(8, 8, seed=9)),
    "svd": (lambda a: np.linalg.svd(a, full_matrices=False), TALL),
    "svd wide": (lambda a: np.linalg.svd(a, False), WIDE),
    "svd of a stack": (lambda a: np.linalg.svd(a, full_matrices=False), STACK),
    "svd full, tall": (full_and_tall, TALL),
    "svd full, wide": (full_and_wide, WIDE),
    "svd full, square": (np.linalg.svd, Z),
    "svd u": (lambda a: np.linalg.svd(a, full_matrices=False).U, WIDE),
    "svd vh": (lambda a: np.linalg.svd(a, full_matrices=False).Vh, WIDE),
    "svd vh of a tall one": (lambda a: np.linalg.svd(a, full_matrices=False).Vh, WIDE.T),
    "svd u of a tall one": (lambda a: np.linalg.svd(a, full_matrices=False).U, WIDE.T),
    "svd values": (lambda a: np.linalg.svd(a, compute_uv=False), WIDE),
    "svd hermitian": (lambda a: np.linalg.svd(hermitian_part(a), hermitian=True), SZ),
    "svd hermitian of a stack": (lambda a: np.linalg.svd(hermitian_part(a), hermitian=True), STACKZ),
    "svd hermitian u": (lambda a: np.linalg.svd(hermitian_part(a), hermitian=True).U, S),
    "svd hermitian vh": (lambda a: np.linalg.svd(hermitian_part(a), hermitian=True).Vh, S),
    "svd hermitian values": (lambda a: np.linalg.svd(hermitian_part(a), compute_uv=False, hermitian=True), SZ),
    "svdvals": (np.linalg.svdvals, STACK),
    "qr": (np.linalg.qr, TALL),
    "qr wide": (np.linalg.qr, WIDE),
    "qr q": (lambda a: np.linalg.qr(a).Q, WIDE),
    "qr r of both": (lambda a: np.linalg.qr(a).R, WIDE),
    "qr complete": (lambda a: np.linalg.qr(a, mode="complete"), TALL),
    "qr complete of a complex stack": (lambda a: np.linalg.qr(a, "complete"), array(2, 5, 2, dtype="c16")),
    "qr complete, the last columns": (lambda a: np.linalg.qr(a, "complete").Q[:, 2:], TALL),
    "qr r": (lambda a: np.linalg.qr(a, "r"), STACK),
    "qr raw": (lambda a: np.linalg.qr(a, "raw"), WIDE.T),
    "qr raw tau": (lambda a: np.linalg.qr(a, "raw")[1], STACK),
    "of strided operands": (lambda a: np.linalg.qr(a[::-1, ::2]), array(4, 5)),
}  # fmt: skip
# Rows whose gradient is not that of differences, and why (the words are those of the core's table of cases).
ROUGH_ROWS = {"eigh of one triangle": "triangle"}
PARAMS = [pytest.param(f, a, id=name) for name, (f, a) in ROWS.items()]


def parts(f):
    """``f`` with its results as a tuple."""

    def outputs(a):
        out = f(a)
        return tuple(out) if isinstance(out, tuple) else (out,)

    return outputs


@pytest.mark.parametrize(("f", "a"), PARAMS)
def test_values_are_those_of_numpy(f, a):
    for given, expected in zip(pb.vjp(parts(f), a)[0], parts(f)(a), strict=True):
        assert (given.dtype, given.shape) == (expected.dtype, expected.shape)
        assert np.asarray(given).tobytes() == np.asarray(expected).tobytes()


@pytest.mark.share(10)
@pytest.mark.parametrize(("f", "a"), [row for row in PARAMS if row.id not in ROUGH_ROWS])
def test_derivatives_of_two_orders_are_right(f, a):
    pb.testing.check_grads(parts(f), (a,), order=2)


@pytest.mark.parametrize(("f", "a"), PARAMS)
def test_the_precision_is_kept(f, a):
    a = a.astype(np.complex64 if a.dtype.kind == "c" else np.float32)
    outs, pull = pb.vjp(parts(f), a)
    assert [(out.dtype, out.shape) for out in outs] == [(out.dtype, out.shape) for out in parts(f)(a)]
    assert pull(tuple(np.ones_like(out) for out in outs))[0].dtype == a.dtype


@pytest.mark.parametrize(("f", "a"), PARAMS)
def test_policies_give_the_same_bits(f, a):
    def steps(a):
        for _ in pb.steps(3):
            outs = parts(f)(a)
            a = a * (1 + 0.01 * np.tanh(sum(np.sum(np.abs(out)) for out in outs)))
        return np.sum(np.abs(a) ** 2)

    expected = pb.grad(steps)(a)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        assert pb.grad(steps, policy=policy)(a).tobytes() == expected.tobytes()


@pytest.mark.parametrize("f", [np.linalg.eigh, np.linalg.eig, np.linalg.svd, np.linalg.qr], ids=lambda f: f.__name__)
def test_named_tuples_stay_named(f):
    seen = []

    def program(a):
        out = f(a)
        seen.append((type(out), out._fields))
        return out

    out, _ = pb.vjp(program, S)
    assert seen == [(type(f(S)), f(S)._fields)]
    assert type(out) is type(f(S))
    hermitian_svd, _ = pb.vjp(lambda a: np.linalg.svd(a, hermitian=True), S)
    assert type(hermitian_svd) is type(np.linalg.svd(S))


@pytest.mark.parametrize("mode", ["full", "f", "economic", "e"])
def test_the_deprecated_modes_of_qr_are_served(mode):
    with pytest.warns(DeprecationWarning, match="option is deprecated"):
        expected = np.linalg.qr(TALL, mode)
    with pytest.warns(DeprecationWarning, match=f"The '{mode}' option is deprecated"):
        given, _ = pb.vjp(lambda a: np.linalg.qr(a, mode), TALL)
    for x, y in zip(given, expected, strict=True) if mode[0] == "f" else [(given, expected)]:
        assert np.array_equal(x, y)
