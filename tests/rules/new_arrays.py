"""What tests of pulls that write share: the table's primitives, arrays in all layouts, and the same program run with
pulls that make new arrays only."""

import numpy as np

from pullback.primitives.elementwise.operators import OPERATORS
from pullback.primitives.elementwise.powers import POWERS
from pullback.primitives.elementwise.sinc_and_bessel import SINC_AND_BESSEL
from pullback.primitives.elementwise.ufunc_rules import ELEMENTWISE
from pullback.rules import forms, generated_pulls
from pullback.rules.cotangent_sums import LARGE

N = LARGE // 8 + 7
RNG = np.random.default_rng(0)
TABLE = [prim for prim in (*ELEMENTWISE, *POWERS, *OPERATORS, *SINC_AND_BESSEL) if prim.trusted]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e300, -1.0])


PLAIN = []
"""Pulls that make new arrays, of the forms that were there when they were last asked for."""


def wholly(monkeypatch, run):
    """What ``run`` gives with pulls that make new arrays, after what it gives as it is."""
    found = run()
    with monkeypatch.context() as patch:
        patch.setattr(generated_pulls, "consuming_lines", lambda *_, **__: [])
        patch.setattr(generated_pulls, "alike", lambda _: False)
        more = zip(forms.FORMS[len(PLAIN) :], forms.PULLS[len(PLAIN) :], strict=True)
        PLAIN.extend([generated_pulls.make_pull(form) if form.rules else pull for form, pull in more])
    before = list(forms.PULLS)
    forms.PULLS[:] = PLAIN
    try:
        return found, run()
    finally:
        forms.PULLS[: len(before)] = before


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype
        assert a.strides == b.strides
        assert a.tobytes() == b.tobytes()


LAYOUTS = {
    "vector": lambda values: values,
    "columns first": lambda values: np.asfortranarray(values.reshape(97, -1)),
    "rows": lambda values: values.reshape(97, -1),
    "gaps": lambda values: np.repeat(values, 2)[::2],
    "backwards": lambda values: values[::-1],
}


def drawn(dtype, layout, *, special):
    values = RNG.uniform(0.2, 0.9, 97 * 200).astype(dtype)
    if special:
        with np.errstate(all="ignore"):
            values[RNG.integers(values.size, size=40)] = np.tile(SPECIAL, 5).astype(dtype)
    return LAYOUTS[layout](values)
