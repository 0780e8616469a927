"""Conformance cases of np.pad: every mode, with pads shorter and longer than the array, on one axis and on several."""

from typing import Any

import numpy as np
from tests.primitives.case import Case, since

_rng = np.random.default_rng(17)
LINE = _rng.normal(size=4)
PLANE = _rng.normal(size=(2, 3))
CUBE = _rng.normal(size=(2, 1, 3))
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
TURNED = np.asfortranarray(_rng.normal(size=(3, 2, 4)))[::-1, :, ::2]
NUMBER = np.array(0.7)
ALL = ("float16", "float32", "float64", "longdouble")
BOTH = ("float32", "float64")

MODES: dict[str, tuple[str, dict[str, Any], str]] = {
    "constant": ("constant", {}, "pad_constant"),
    "constant 3": ("constant", {"constant_values": 3}, "pad_constant"),
    "constant pair": ("constant", {"constant_values": (1.5, -2)}, "pad_constant"),
    "edge": ("edge", {}, "pad_edge"),
    "wrap": ("wrap", {}, "pad_wrap"),
    "reflect": ("reflect", {}, "pad_mirror"),
    "reflect odd": ("reflect", {"reflect_type": "odd"}, "pad_mirror"),
    "symmetric": ("symmetric", {"reflect_type": "even"}, "pad_mirror"),
    "symmetric odd": ("symmetric", {"reflect_type": "odd"}, "pad_mirror"),
    "linear_ramp": ("linear_ramp", {}, "pad_ramp"),
    "linear_ramp pair": ("linear_ramp", {"end_values": (2.0, -1.0)}, "pad_ramp"),
    "mean": ("mean", {}, "pad_mean"),
    "mean of some": ("mean", {"stat_length": (2, 1)}, "pad_mean"),
    "maximum": ("maximum", {}, "pad_statistic"),
    "maximum of some": ("maximum", {"stat_length": 2}, "pad_statistic"),
    "minimum": ("minimum", {"stat_length": None}, "pad_statistic"),
    "minimum of some": ("minimum", {"stat_length": ((1, 2),)}, "pad_statistic"),
    "median": ("median", {}, "pad_statistic"),
    "median of some": ("median", {"stat_length": (2, 3)}, "pad_statistic"),
}
WIDTHS: dict[str, Any] = {
    "none": 0,
    "short": (2, 1),
    "one side": ((0, 2),),
    "longer than the array": (5, 9),
    "many times": (17, 40),
}


def _one(name: str, function: Any, *arrays: Any, covers: tuple[str, ...], **kwargs: Any) -> Case:
    return Case(f"pad {name}", function, arrays, ("pad", *covers), **kwargs)


def _lines() -> tuple[Case, ...]:
    return tuple(
        _one(f"{name}, {widths}", lambda x, w=w, m=mode, o=options: np.pad(x, w, m, **o), LINE, covers=(covers,))
        for name, (mode, options, covers) in MODES.items()
        for widths, w in WIDTHS.items()
    )


def _planes() -> tuple[Case, ...]:
    rows = []
    for name, (mode, options, covers) in MODES.items():
        pad = lambda x, w, m=mode, o=options: np.pad(x, w, m, **o)  # noqa: E731 - two lines below
        rows += [
            _one(f"{name}, plane", lambda x, p=pad: p(x, ((1, 2), (4, 0))), PLANE, covers=(covers,), dtypes=ALL),
            _one(f"{name}, an axis of one", lambda x, p=pad: p(x, ((1, 0), (2, 1), (0, 3))), CUBE, covers=(covers,)),
            _one(f"{name}, strides", lambda x, p=pad: p(x, 2), TURNED, covers=(covers,)),
        ]
        if "ramp" not in name:
            rows.append(_one(f"{name}, complex", lambda x, p=pad: p(x, ((1, 2), (3, 0))), WAVE, covers=(covers,)))
    return tuple(rows)


def _values() -> tuple[Case, ...]:
    """Constants and ends that are traced."""
    rows = []
    for mode, option, covers in (
        ("constant", "constant_values", "pad_constant"),
        ("linear_ramp", "end_values", "pad_ramp"),
    ):
        pad = lambda x, w, v, m=mode, o=option: np.pad(x, w, m, **{o: v})  # noqa: E731 - used below
        rows += [
            _one(
                f"{mode} {what}",
                lambda x, v, p=pad: p(x, ((1, 2), (3, 0)), v),
                PLANE,
                values,
                covers=(covers,),
                dtypes=BOTH,
            )
            for what, values in (
                ("a value", NUMBER),
                ("one value", LINE[:1]),
                ("a pair", LINE[:2]),
                ("a column", LINE[:2].reshape(2, 1)),
                ("a pair for each axis", LINE.reshape(2, 2)),
            )
        ]
        rows += [
            _one(
                f"{mode} list of values", lambda x, v, p=pad: p(x, 2, [v[0], v[1] * v[2]]), LINE, LINE, covers=(covers,)
            ),
            _one(f"{mode} values of the array", lambda x, p=pad: p(x, 1, x[0]), LINE, covers=(covers,)),
            _one(f"{mode} value beside nothing", lambda x, v, p=pad: p(x, 0, v), PLANE, NUMBER, covers=(covers,)),
        ]
    return tuple(rows)


def _by_hand(vector: Any, widths: Any, axis: int, options: Any) -> None:
    """A mode of the user's own: the edge, times a factor that depends on the axis."""
    before, after = widths
    factor = options.get("factor", 2.0) + axis
    vector[:before] = vector[before] * factor
    if after:
        vector[-after:] = vector[-after - 1] ** 2


def _others() -> tuple[Case, ...]:
    covers = ("pad_constant",)
    empty = np.zeros((0, 3))
    return (
        _one("default", lambda x: np.pad(x, 1), PLANE, covers=covers),
        _one("empty", lambda x: np.pad(x, ((1, 2), (0, 3)), "empty")[1:3, :3] * 2.0, PLANE, covers=covers),
        _one("a function", lambda x: np.pad(x, ((1, 2), (2, 0)), _by_hand), PLANE, covers=covers),
        _one("a function with options", lambda x: np.pad(x, 1, _by_hand, factor=3.0), LINE, covers=covers),
        _one("0-d", lambda x: np.pad(x, 3, "edge") * 2.0, NUMBER, covers=("pad_edge",)),
        _one("nothing, constant", lambda x, v: np.pad(x, 1, constant_values=v), empty, NUMBER, covers=covers),
        _one("nothing, edge", lambda x: np.pad(x, ((0, 0), (1, 2)), "edge"), empty, covers=("pad_edge",)),
        _one("nothing, maximum", lambda x: np.pad(x, ((0, 0), (1, 2)), "maximum"), empty, covers=("pad_statistic",)),
        _one("list of widths", lambda x: np.pad(x, [[1, 2], [0, 1]], "wrap"), PLANE, covers=("pad_wrap",)),
        _one("wide and complex constant", lambda z, v: np.pad(z, 1, constant_values=v), WAVE, np.array(1 + 2j),
            covers=covers),
        *since("2.3.0",
            _one("widths by axis", lambda x: np.pad(x, {-1: (1, 4), 0: 2}, "reflect"), PLANE, covers=("pad_mirror",))),
    )  # fmt: skip


CASES = (*_lines(), *_planes(), *_values(), *_others())
