"""Bodies of loops, drawn as text a statement at a time; a statement that plain NumPy refuses is left out."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

import pullback as pb

N_STEPS = 11
IDX = np.array([2, 0, 0, 1])
MASK = np.array([True, False, True, True])
TABLE = np.linspace(-0.9, 0.8, 4 * N_STEPS).reshape(N_STEPS, 4)

MAKES = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / (1.5 + {b} * {b})", "-{a}", "{a} ** 2", "{a} ** P[k % 3]",
    "np.sin({a})", "np.exp(-{a} * {a})", "np.sqrt(1 + {a} * {a})", "np.maximum({a}, {b})", "np.abs({a})",
    "np.arctan2({a}, 2 + {b} * {b})", "np.add({a}, {b})", "2 - {a}", "{a} * 0.3", "{a} + 0.1 * k",
    "{a} * np.float64(0.3)", "{a} * (0.5 if k % 2 else np.float32(0.5))", "{a} * S[k]", "{a} + TABLE[k]",
    "{a} * TABLE[k, 1]", "{a} * [0.1, 0.2, 0.3, 0.4]", "{a}.sum()", "np.sum({a}, axis=0)",
    "np.sum({a}, axis=-1, keepdims=True)", "{a}.mean()", "np.max({a})", "np.prod({a})", "np.cumsum({a}, axis=-1)",
    "{a}[1:]", "{a}[::-1]", "{a}[::2]", "{a}[None]", "{a}[0]", "{a}[..., 1]", "{a}[..., :-1]", "{a}.T",
    "{a}.reshape(-1)", "np.ravel({a})", "{a}.reshape(2, -1)", "{a}[k % 2]", "{a}[..., k % 3]", "{a}[IDX]",
    "{a}[..., IDX]", "{a}[[0, 0]]", "{a}[..., MASK]", "{a}[..., IDX[k % 4]]", "{a}.copy()", "{a} * 1.0",
    "np.zeros_like({a})", "np.ones_like({a})", "np.full_like({a}, 0.3)", "np.concatenate([{a}, {b}])",
    "np.stack([{a}, {b}])", "np.roll({a}, 1)", "np.where(MASK, {a}, {b})", "np.where({a} > {b}, {a}, 0.5 * {b})",
    "{a} @ {b}", "np.outer({a}, {b})", "np.sort({a})", "np.clip({a}, -0.5, 0.5)", "np.broadcast_to({a}, (2, 3, 4))",
    "np.einsum('...i,...i->...', {a}, {b})", "pb.stop_gradient({a})", "np.real({a})", "{a}", "{a} + W", "{a} * W",
    "W * 2.0", "np.tanh({a}).astype(np.float32)", "np.dot({a}, {b})", "({a} > 0) * {b}", "np.squeeze({a})",
    "{a}.swapaxes(0, -1)", "np.multiply.outer({a}, [0.5, 0.2])", "np.diff({a})", "np.pad({a}, 1)",
    "np.logaddexp({a}, {b})", "np.add.reduce({a})", "np.split({a}, 2)[1]", "np.flip({a})", "np.var({a})",
    "{a} * BUFFER", "pb.fori_loop(0, 2, INNER, {a})", "pb.fori_loop(0, k % 3, INNER, {a})",
    "pb.checkpoint(CHECKED)({a}, {b})", "MARKED({a}, {b})",
)  # fmt: skip
"""What makes a new value of ``a`` and ``b``."""
DOES = (
    "{a} += {b}", "{a} -= 0.1 * {b}", "{a} *= {b}", "{a} *= 0.7", "{a} /= 1.5", "{a}[1:] = {b}", "{a}[0] = {b}",
    "{a}[0] += {b}", "{a}[...] = {b}", "{a}[:] += {b}", "{a}[::2] -= {b}", "{a}[..., 1] = 0.3", "{a}[1:][:1] += {b}",
    "{a}[k % 2] += {b}", "{a}[..., k % 3] = {b}", "{a}[IDX] += {b}", "{a}[..., MASK] = {b}", "{a}[..., MASK] *= 0.5",
    "{a}[{a} > 0.4] = 0.2", "np.add({a}, {b}, out={a})", "np.multiply({a}, 0.5, out={a})", "np.add.at({a}, IDX, {b})",
    "np.copyto({a}, {b})", "{a}.fill(0.2)", "{a}[..., 1:] += {a}[..., :-1]", "{a}[::-1] += {b}", "{a}.T[0] = {b}",
    "{a} = {a} * 0.5", "{a} = {a}[::-1]", "{a}, {b} = {b}, {a}", "float(np.sum(pb.value({a})))", "{a}.flat[0]",
    "str(pb.value({a}))", "BUFFER[:] = TABLE[k]", "BUFFER *= 0.5", "{a} = {a} + BUFFER", "{a}[...] = TABLE[k]",
    "{a}.sort()", "{a}[0], {a}[1] = {a}[1], {a}[0]",
)  # fmt: skip
"""What changes values that are there."""
WHEN = ("", "", "", "", "", "if k % 2: ", "if k % 3 == 1: ", "if k == 6: ", "if k > 4: ", "if {v} > 0.1: ")
SHAPES = ((4,), (3, 4), (), (4, 1), (2, 4))
LARGEST = 20_000
SIZES = (1, 600)
"""By how much the last axis is longer: results from 16 KiB on are computed into buffers."""

instructions = st.tuples(st.booleans(), *(st.integers(0, 2**16),) * 4)


def repeated(array: Any, size: int) -> Any:
    """A table or an index for arrays with a longer last axis."""
    return np.tile(array, size) if size > 1 else array


def inner(k: int, u: Any) -> Any:
    """A step of a loop within a step."""
    return np.sin(u) * 0.9 + 0.1 * u


def checked(u: Any, v: Any) -> Any:
    """What a checkpoint within a step holds nothing of."""
    return np.tanh(u * v) + u


def marked(u: Any, v: Any) -> Any:
    """Marked steps within a step."""
    for _ in pb.steps(2):
        u = u * 0.7 + v * u
    return u


def surroundings(size: int) -> dict[str, Any]:
    """The names that the text of a body refers to."""
    wide = repeated(TABLE, size)
    return {
        "np": np, "pb": pb, "IDX": IDX, "MASK": repeated(MASK, size), "TABLE": wide, "S": [0.1 * k for k in range(40)],
        "P": (2, 3, 1.5), "INNER": inner, "CHECKED": checked, "MARKED": marked,
    }  # fmt: skip


def drawn_body(leaves: list[Any], x: Any, w: Any, program: list[Any], size: int) -> str:
    """The text of ``body(k, s, x, W)``, whose statements plain NumPy carries out on these leaves."""
    around = surroundings(size)
    names = [*(f"s{i}" for i in range(len(leaves))), "x"]
    values = dict(zip(names, [*map(np.array, leaves), np.array(x)], strict=True))
    unpacked = ", ".join(names[:-1])
    lines = [f"def body(k, s, x, W):\n    {unpacked}, = s\n    BUFFER = np.zeros({4 * size})"]
    values |= {"W": w, "BUFFER": np.zeros(4 * size), "k": 0}
    n = 0
    for makes, op, i, j, when in program:
        a, b = names[i % len(names)], names[j % len(names)]
        trial = dict(values)
        if makes:
            line, name, guard = f"v{n} = " + MAKES[op % len(MAKES)].format(a=a, b=b), f"v{n}", ""
        else:
            line, name = DOES[op % len(DOES)].format(a=a, b=b), None
            guard = WHEN[when % len(WHEN)]
            if np.may_share_memory(values[a], values["x"]) and not line.startswith(("float", "str")):
                continue  # a write to a captured value is an error of its own
        kinds = {key: kind_of(value) for key, value in values.items()}
        try:
            with np.errstate(all="ignore"):
                exec(line, around, trial)  # noqa: S102 - drawn above
        except Exception:  # noqa: BLE001, S112 - whatever plain NumPy refuses
            continue
        if any(kind_of(trial[key]) != kind for key, kind in kinds.items()):
            continue
        if name and (not isinstance(trial[name], np.ndarray | np.generic) or np.size(trial[name]) > LARGEST):
            continue
        values = trial
        if name:
            names.append(name)
            n += 1
        if "{v}" in guard:
            guard = guard.format(v=f"np.sum(pb.value({names[j % len(names)]}))")
        lines.append(f"    {guard}{line}")
    returned = ", ".join(ending(names, values, leaves, program))
    return "\n".join([*lines, f"    return {returned},\n"])


def kind_of(value: Any) -> Any:
    """What a step may not change."""
    return np.shape(value), getattr(value, "dtype", None)


def ending(names: list[str], values: dict[str, Any], leaves: list[Any], program: list[Any]) -> list[str]:
    """For each leaf an expression of its kind, of what the body has made."""
    last = names[-1] if names[-1] != "x" else "s0"
    found = []
    for i, leaf in enumerate(leaves):
        alike = [name for name in names if kind_of(values[name]) == kind_of(leaf)]
        choice = sum(part[1 + i] for part in program)
        if alike and choice % 3:
            found.append(alike[(choice // 3) % len(alike)])
        else:
            text = f"np.tanh(s{i} + np.sum({last}) * 0.1 + x.mean() * 0.2)"
            found.append(f"{text}.astype(np.float32)" if kind_of(leaf)[1] == np.float32 else text)
    return found


def drawn_leaves(shapes: list[int], kinds: int, size: int, random: np.random.Generator) -> list[Any]:
    """Leaves of a state, of several shapes, dtypes and layouts. In half of the draws, those of one shape hold the same:
    a step that mistakes one for the other passes every look at bytes."""
    leaves: list[Any] = []
    held: dict[Any, Any] = {}
    for place, at in enumerate(shapes):
        shape = SHAPES[at % len(SHAPES)]
        leaf = random.uniform(-1, 1, (*shape[:-1], shape[-1] * size) if shape else ())
        if kinds >> 6:
            leaf = held.setdefault(shape, leaf)
        kind = (kinds >> (2 * place)) % 4
        leaves.append(leaf.astype(np.float32) if kind == 1 else np.asfortranarray(leaf) if kind == 2 else leaf)
        if kind == 3 and not shape and place:
            leaves[-1] = float(leaf)
    return leaves


def body_of(text: str, size: int) -> Any:
    """The function of a drawn text."""
    names: dict[str, Any] = {}
    exec(compile(text, "<drawn>", "exec"), surroundings(size), names)  # noqa: S102 - drawn above
    return names["body"]


arguments = (
    st.lists(instructions, min_size=2, max_size=12),
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.integers(0, 127),
    st.sampled_from(SIZES),
)
checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
