"""A ``Budget`` over drawn mixtures of loops, marked steps, checkpoints and code between them (``budget_programs``):
``tracemalloc``'s peak and the report stay within the bytes, a figure that is told is enough, more bytes are accepted
where fewer are, plans are what is booked, and the gradients have the bits of save-all. Pulls come once, twice, and by
turns with those of another ``vjp``."""

import pytest
from tests.promises.budget_programs import Mixture, drawn, fault_of

FOUND = (  # each held more than its bytes, or was refused, before it was mended
    Mixture((("fori", 25, (3, 12)),) * 3, "twice", exact=False, kept=False, more=1.0),  # another pull found more held
    Mixture((("steps", 25, (3, 1, 10)), ("steps", 2, (9,)), ("while", 2, (14, 7))), "twice", False, True, 1.1268),
    Mixture((("fori", 6, (3,)), ("outputs", 10, (6,))), "grad", False, False, 1.0),  # outputs of all steps came at once
    Mixture((("plain", 25, (8, 3)), ("steps", 1, (12,))), "once", False, False, 6.4),  # counted twice at the peak
    Mixture((("nest", 10, (10,)),), "grad", False, False, 1.9),  # what loops in steps hold was booked twice
    Mixture((("fori", 25, (11, 8, 4)), ("while", 3, (0, 10)), ("plain", 16, (1, 12, 5))), "grad", True, False, 1.4),
    Mixture((("nest", 2, (3,)), ("plain", 16, (11,))), "interleaved", True, False, 1.0),  # exact, and loops
    Mixture((("kept", 2, (13, 10, 11)),), "twice", False, False, 1.0),  # what is computed again of a checkpoint
    drawn(964),  # steps that grew by a little more than there was room for: an IndexError
)


LIKE_THE_FIRST = Mixture(tuple((form, 25, (3, 12)) for form in ("scan", "while", "fori")), "twice", False, False, 1.0)


@pytest.mark.parametrize("mixture", [*FOUND, pytest.param(LIKE_THE_FIRST, marks=pytest.mark.slow)], ids=str)
def test_what_was_found(mixture):
    assert fault_of(mixture) == ""


@pytest.mark.parametrize("seed", range(2))
def test_drawn_mixtures(seed):
    assert fault_of(drawn(seed)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 1000))
def test_many_drawn_mixtures(seed):
    assert fault_of(drawn(seed)) == ""
