"""Programs as people write them: by staged steps they have the bits, the errors and the output of recorded ones, under
every policy, at two inputs, from the first call on."""

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest
from tests.programs.written_programs import PROGRAMS

import pullback as pb

POLICIES = (pb.SaveAll(), pb.Binomial(4), pb.Recompute(), pb.Budget("400 kB"), "auto")
INPUTS = [np.array([0.1, 0.5, 0.31, 0.9, 0.77, 0.2]), np.array([0.45, -0.3, 0.0, 1.2, -0.0, 0.33])]


def outcome(f: Any, x: Any, policy: Any, staging: str) -> tuple[Any, str]:
    """The bytes of value and gradient, or the kind of error; and what was printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), np.errstate(all="ignore"), pb.using(staging=staging):
        try:
            found: Any = [np.asarray(part).tobytes() for part in pb.value_and_grad(f, policy=policy)(x.copy())]
        except pb.PullbackError as error:
            found = type(error)
    return found, printed.getvalue()


@pytest.mark.share(6, of=lambda name, policy: repr(policy))
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("name", PROGRAMS)
def test_staged_steps_do_what_recorded_ones_do(name, policy):
    f = PROGRAMS[name]
    wanted = [outcome(f, x, policy, "off") for x in INPUTS]
    for staging in ("auto", "numpy"):
        for _ in range(2):  # the second time stages are there
            assert [outcome(f, x, policy, staging) for x in INPUTS] == wanted
