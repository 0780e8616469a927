"""What ``view`` gives of a traced array."""

import numpy as np
import pytest

import pullback as pb


def test_a_view_without_arguments_is_the_array_again():
    def f(x):
        u = x * 1.0
        v = u.view()
        v[0] *= 3.0
        return np.sum(u * u)

    x = np.array([1.0, 2.0, 3.0])
    assert pb.value_and_grad(f)(x)[0] == f(x) == 22.0
    assert pb.grad(f)(x).tolist() == [18.0, 4.0, 6.0]
    with pytest.raises(AttributeError, match=r"no attribute 'view'.*Without arguments it is x\[\.\.\.\]"):
        pb.grad(lambda x: np.sum(x.view(np.int64)))(x)
