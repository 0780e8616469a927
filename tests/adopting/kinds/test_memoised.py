"""Caches of functions in adopted code: traced arguments pass them by."""

import pullback as pb

TEXT = """
from functools import cache, lru_cache
import functools

@lru_cache(maxsize=8)
def square(x, n=2):
    return x**n

@cache
def cube(x):
    return x * square(x, n=2)

class Beam:
    @functools.lru_cache
    def moment(self, place):
        return place[0] * place[1]

def total(x):
    beam = Beam()
    return square(x) + cube(x) + beam.moment((x, 2.0)) + square(3.0)
"""


def test_traced_arguments_pass_a_cache_by(tmp_path):
    (tmp_path / "memoised_steps.py").write_text(TEXT)
    steps = pb.adopt(tmp_path / "memoised_steps.py")
    assert steps.total(2.0) == 4.0 + 8.0 + 4.0 + 9.0
    held = steps.square.cache_info()
    assert (held.currsize, held.maxsize, steps.square.__name__) == (3, 8, "square")
    assert [pb.grad(steps.total)(x) for x in (2.0, 2.0, 3.0)] == [18.0, 18.0, 35.0]
    assert pb.grad(pb.grad(steps.total))(2.0) == 14.0
    assert steps.square.cache_info().currsize == 3  # nothing of a trace stays
    steps.square.cache_clear()
    assert steps.square.cache_info().currsize == 0
