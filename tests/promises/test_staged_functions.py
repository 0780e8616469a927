"""Drawn functions, called again and again: value and gradient have the bits that they have without the decorator, under
every policy.

The bodies are those of the drawn loops, called by a loop of Python's.
"""

from copy import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.programs.drawn_bodies import N_STEPS, arguments, body_of, checks, drawn_body, drawn_leaves, kind_of

import pullback as pb
from pullback.continued_sums import arriving_cotangents

POLICIES = (pb.SaveAll(), pb.Binomial(3))


def differentiated(body: Any, leaves: list[Any], x: Any, w: Any, policy: Any) -> Any:
    """The bytes of value and gradients, or the kind of error."""

    def loss(x: Any, start: Any) -> Any:
        state: Any = tuple(start * leaf if k == 0 else copy(leaf) for k, leaf in enumerate(leaves))
        for k in range(N_STEPS):
            state = body(k, state, x, w)
        return sum(np.sum(np.tanh(leaf)) for leaf in state) + np.sum(state[0] * state[0])

    with np.errstate(all="ignore"):
        try:
            value, gradients = pb.value_and_grad(loss, argnums=(0, 1), policy=policy)(x, leaves[0] * 0 + 1.0)
        except Exception as error:  # noqa: BLE001 - the same kind has to come
            return type(error)
    return [(*kind_of(part), np.asarray(part).tobytes()) for part in (value, *gradients)]


def assert_same_bits(program: list[Any], shapes: list[int], kinds: int, size: int) -> None:
    random = np.random.default_rng(len(program))
    leaves = drawn_leaves(shapes, kinds, size, random)
    x, w = random.uniform(0.2, 1, 4 * size), random.uniform(-1, 1, 4 * size)
    text = drawn_body(leaves, x, w, program, size)
    body = body_of(text, size)
    staged = pb.staged(body)
    for policy in POLICIES:
        wanted = differentiated(body, leaves, x.copy(), w, policy)
        for _ in range(3):
            found = differentiated(staged, leaves, x.copy(), w, policy)
            refused = found is pb.WriteError  # an argument is written, and something is met that is not followed
            assert refused or found == wanted, f"{policy!r}\n{text}"


@settings(max_examples=16, deadline=None, suppress_health_check=checks)
@given(*arguments)
def test_drawn_functions(program, shapes, kinds, size):
    assert_same_bits(program, shapes, kinds, size)


@settings(max_examples=16, deadline=None, suppress_health_check=checks)
@given(*arguments)
def test_drawn_functions_to_which_cotangents_have_come(program, shapes, kinds, size):
    """The functions that go on with these are used at once, and nobody looks whether they are right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arriving_cotangents, "PAYS", 0)
        patch.setattr(arriving_cotangents, "COMPARED", 0)
        assert_same_bits(program, shapes, kinds, size)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=checks)
@given(*arguments)
def test_many_drawn_functions(program, shapes, kinds, size):
    assert_same_bits(program, shapes, kinds, size)
