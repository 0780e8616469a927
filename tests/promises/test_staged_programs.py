"""Drawn bodies of loops: value and gradient by staged steps have the bits of recorded ones, under every policy, whether
a loop function calls the body or marked steps do.

A body is drawn as text, a statement at a time; a statement that plain NumPy refuses is left out.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.programs.drawn_bodies import N_STEPS, arguments, body_of, checks, drawn_body, drawn_leaves, kind_of

import pullback as pb

POLICIES = (pb.SaveAll(), pb.Binomial(3), pb.Recompute())


def by_function(body: Any, state: Any, x: Any, w: Any) -> Any:
    """The state after all steps, by a loop function."""
    return pb.fori_loop(0, N_STEPS, lambda k, s: body(k, s, x, w), state)


def by_marks(body: Any, state: Any, x: Any, w: Any) -> Any:
    """The same by marked steps."""
    for k in pb.steps(N_STEPS):
        state = body(k, state, x, w)
    return state


def differentiated(loop: Any, body: Any, leaves: list[Any], x: Any, w: Any, policy: Any, staging: str) -> Any:
    """The bytes of value and gradients, or the kind of error."""

    def loss(x: Any, start: Any) -> Any:
        state = [start * leaf if k == 0 else np.array(leaf, like=x) for k, leaf in enumerate(leaves)]
        end = loop(body, tuple(state), x, w)
        return sum(np.sum(np.tanh(leaf)) for leaf in end) + np.sum(end[0] * end[0])

    with np.errstate(all="ignore"), pb.using(staging=staging):
        try:
            value, gradients = pb.value_and_grad(loss, argnums=(0, 1), policy=policy)(x, leaves[0] * 0 + 1.0)
        except Exception as error:  # noqa: BLE001 - the same kind has to come
            return type(error)
    return [(*kind_of(part), np.asarray(part).tobytes()) for part in (value, *gradients)]


def assert_same_bits(loop: Any, program: list[Any], shapes: list[int], kinds: int, size: int) -> None:
    """Under every policy, twice: the second time stages are there."""
    random = np.random.default_rng(len(program))
    leaves = drawn_leaves(shapes, kinds, size, random)
    x, w = random.uniform(0.2, 1, 4 * size), random.uniform(-1, 1, 4 * size)
    text = drawn_body(leaves, x, w, program, size)
    assert not difference(loop, text, leaves, x, w, size)


def difference(loop: Any, text: str, leaves: list[Any], x: Any, w: Any, size: int) -> str:
    """Where staged steps do something else than recorded ones; empty where they do not."""
    body = body_of(text, size)
    for policy in POLICIES:
        wanted = differentiated(loop, body, leaves, x, w, policy, "off")
        for _ in range(2):
            found = differentiated(loop, body, leaves, x, w, policy, "numpy")
            if found != wanted:
                kinds = [part.__name__ if isinstance(part, type) else "other bits" for part in (wanted, found)]
                return f"{policy!r}: {kinds[0]} by recorded steps, {kinds[1]} by staged ones\n{text}"
    return ""


@settings(max_examples=15, deadline=None, suppress_health_check=checks)
@pytest.mark.parametrize("loop", [by_function, by_marks])
@given(*arguments)
def test_drawn_bodies(loop, program, shapes, kinds, size):
    assert_same_bits(loop, program, shapes, kinds, size)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=checks)
@pytest.mark.parametrize("loop", [by_function, by_marks])
@given(*arguments)
def test_many_drawn_bodies(loop, program, shapes, kinds, size):
    assert_same_bits(loop, program, shapes, kinds, size)
