"""Sparse systems by iterations: the solution does not depend on the way to it, and neither does its derivative.

The cotangent of b solves the transposed system by the same method, with the transpose of the preconditioner and the
same tolerances: a derivative is as exact as the solution. Nothing of the iterations is held.
"""

from typing import Any, Self

import numpy as np
from scipy.sparse import linalg

import pullback as pb
from pullback_scipy.mirroring import as_array, holds
from pullback_scipy.sparse_arrays.arrays import SparseArray


class LinearOperator(linalg.LinearOperator):  # type: ignore[misc] # SciPy ships no types
    """SciPy's, whose functions may take, give and close over traced values."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """An operator of this class, where SciPy's gives one of a class of its own."""
        return object.__new__(cls)

    def __init__(
        self, shape: Any = None, matvec: Any = None, rmatvec: Any = None, matmat: Any = None, dtype: Any = None,
        **names: Any,
    ) -> None:  # fmt: skip
        names.pop("rmatmat", None)
        if matvec is not None and not hasattr(matvec, "dtype") and callable(matvec):
            self.__matvec, self.__rmatvec, self.__matmat = matvec, rmatvec, matmat
        else:  # a subclass says LinearOperator.__init__(self, dtype, shape), as SciPy documents it
            shape, dtype = (names.get("shape", matvec), shape) if matvec is not None else (shape, dtype)
            self.__matvec = None
        self.shape, self.dtype, self.args = tuple(shape), np.dtype(dtype or float), ()

    def _matvec(self, x: Any) -> Any:
        return self.__matvec(x) if self.__matvec is not None else self.matmat(np.reshape(x, (-1, 1)))

    def _rmatvec(self, x: Any) -> Any:
        if self.__matvec is None or self.__rmatvec is None:
            raise NotImplementedError("rmatvec is not defined")
        return self.__rmatvec(x)

    def matvec(self, x: Any) -> Any:
        """The product with a vector, or with a matrix of one column."""
        return np.reshape(self._matvec(x), (self.shape[0], *np.shape(x)[1:]))

    def rmatvec(self, x: Any) -> Any:
        """The product of the adjoint with a vector."""
        return np.reshape(self._rmatvec(x), (self.shape[1], *np.shape(x)[1:]))

    def matmat(self, X: Any) -> Any:
        """The product with a matrix, column by column."""
        if self.__matvec is not None and self.__matmat is not None:
            return self.__matmat(X)
        return np.stack([self.matvec(X[:, k]) for k in range(X.shape[1])], axis=1)

    def dot(self, x: Any) -> Any:
        """The product with a vector or a matrix."""
        return self.matvec(x) if np.ndim(x) == 1 else self.matmat(x)

    def __matmul__(self, x: Any) -> Any:
        return self.dot(x)

    def __call__(self, x: Any) -> Any:
        return self.dot(x)


def product_with(A: Any) -> Any:
    """The function v -> A v of a sparse or dense array, an operator or a function."""
    if isinstance(A, LinearOperator):
        return A.matvec
    if isinstance(A, linalg.LinearOperator):
        return A.matvec
    return lambda v: A @ v


def plain_operator(A: Any) -> Any:
    """A as an operator of plain values: bicg asks for products with the adjoint, too."""
    if isinstance(A, LinearOperator):
        return linalg.LinearOperator(
            A.shape, lambda v: pb.value(A.matvec(v)), lambda v: pb.value(A.rmatvec(v)), dtype=A.dtype
        )
    return linalg.aslinearoperator(A.value if isinstance(A, SparseArray) else pb.value(A))


def transposed_preconditioner(M: Any) -> Any:
    """The transpose of a preconditioner, as SciPy takes it."""
    if M is None:
        return None
    if isinstance(M, linalg.LinearOperator):
        return linalg.LinearOperator(M.shape, lambda v: np.conjugate(M.rmatvec(np.conjugate(v))), dtype=M.dtype)
    return M.T


def plain_preconditioner(M: Any) -> Any:
    """The values of a preconditioner, on which no solution depends."""
    if isinstance(M, SparseArray):
        return M.value
    if isinstance(M, LinearOperator):
        return linalg.LinearOperator(
            M.shape, lambda v: pb.value(M.matvec(v)), lambda v: pb.value(M.rmatvec(v)), dtype=M.dtype
        )
    return pb.value(M) if M is not None and not isinstance(M, linalg.LinearOperator) else M


def iterative(function: Any, *, symmetric: bool = False) -> Any:
    """The counterpart of an iterative solver of SciPy's."""

    def call(A: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any) -> Any:
        ours = isinstance(A, SparseArray | LinearOperator)
        if not (ours or holds(A) or holds(b)):
            return function(A, b, x0, M=M, **options)
        dense = as_array(b)
        column = dense.ndim == 2
        apply, n, infos = product_with(A), dense.shape[0], []
        M = plain_preconditioner(M)
        start = None if x0 is None else np.array(pb.value(x0))
        plain = plain_operator(A)

        def solve(matvec: Any, right: Any, M: Any = M, start: Any = start, rmatvec: Any = plain.rmatvec) -> Any:
            operator = linalg.LinearOperator(
                (n, n), matvec, rmatvec, dtype=np.result_type(plain.dtype, right.dtype, np.float32)
            )
            x, info = function(operator, right, start, M=M, **options)
            infos.append(info)
            return x

        def transposed(vecmat: Any, ct: Any) -> Any:
            turned = M if symmetric else transposed_preconditioner(M)
            x = solve(vecmat, ct, turned, None, lambda v: np.conjugate(plain.matvec(np.conjugate(v))))
            left = float(np.linalg.norm(pb.value(vecmat(x) - ct)))
            enough = max(options.get("rtol", 1e-5) * float(np.linalg.norm(pb.value(ct))), options.get("atol", 0.0))
            if infos[-1] != 0 or left > 1e3 * enough:  # tfqmr with M= calls far ones found
                raise pb.ConvergenceError(
                    f"scipy.sparse.linalg.{function.__name__}: the transposed system, which its derivative solves, did "
                    f"not converge (info = {infos[-1]}, residual {left:.2g}); give a larger maxiter= or rtol=, or a "
                    "better preconditioner M= that has a transpose (rmatvec)",
                    left,
                )
            return x

        x = pb.custom_linear_solve(apply, dense[:, 0] if column else dense, solve, transposed)
        return x, infos[0] if infos else 0

    call.by, call.__name__, call.__doc__ = ("A", "b"), function.__name__, function.__doc__  # type: ignore[attr-defined]
    return call


cg = iterative(linalg.cg, symmetric=True)
minres = iterative(linalg.minres, symmetric=True)
bicg = iterative(linalg.bicg)
bicgstab = iterative(linalg.bicgstab)
cgs = iterative(linalg.cgs)
gmres = iterative(linalg.gmres)
lgmres = iterative(linalg.lgmres)
gcrotmk = iterative(linalg.gcrotmk)
tfqmr = iterative(linalg.tfqmr)


def aslinearoperator(A: Any) -> Any:
    """An operator of a matrix, traced or not."""
    if isinstance(A, LinearOperator) or not (isinstance(A, SparseArray) or holds(A)):
        return A if isinstance(A, LinearOperator) else linalg.aslinearoperator(A)
    adjoint = A.rmatvec if isinstance(A, SparseArray) else lambda v: np.conjugate(A).T @ v
    return LinearOperator(A.shape, lambda v: A @ v, adjoint, dtype=A.dtype)


aslinearoperator.by = ("A",)  # type: ignore[attr-defined] # as of `mirror`
LinearOperator.by = ("matvec",)
