"""Structured arrays in adopted code: their fields hold traced values."""

import numpy as np
import pytest

import pullback as pb

TEXT = """
import numpy as np

def run(c):
    z = np.zeros(4, dtype=[("position", float, 2), ("mass", np.float64), ("kind", int)])
    z["mass"] = c
    z["kind"] = np.arange(4)
    z["position"][1:, 0] = c * np.arange(3)
    z["position"] += 0.5
    part = z[1:3]
    part["mass"][0] = 2 * c
    row = z[3]
    row["mass"] = row["mass"] * c
    z[0] = (c, 3.0, 7)
    saved = z.copy()
    record = z.view(np.recarray)
    record.mass[2] *= 1.5
    z["mass"] *= 2
    total = record.mass[0]
    for one in z:
        total += one["mass"] * one["kind"]
    return total + saved["mass"].sum() + np.sum(z["position"] ** 2) + z[["mass", "kind"]]["mass"][1] + len(z) + z.size
"""


def test_the_fields_of_a_structured_array_hold_traced_values(tmp_path):
    (tmp_path / "with_fields.py").write_text(TEXT)
    copy, x, h = pb.adopt(tmp_path / "with_fields.py"), 0.7, 1e-6
    value, gradient = pb.value_and_grad(copy.run)(x)
    assert value == copy.run(x)
    np.testing.assert_allclose(gradient, (copy.run(x + h) - copy.run(x - h)) / (2 * h), rtol=1e-8)
    assert pb.grad(copy.run, policy=pb.Binomial(2))(x) == gradient


COPIED = """
import copy
import numpy as np

def run(c):
    z = np.zeros(4, dtype=[("position", float, 2), ("mass", float)])
    z["mass"] = 3.0
    start = np.array(z)
    z["mass"] *= c
    z["position"][:, 1] = z["mass"]
    kept, other, last = np.array(z), np.copy(z), copy.deepcopy(z)
    z["mass"] += 1.0
    both = np.concatenate([start, z])
    whole = np.zeros_like(z)
    whole["mass"] = kept["mass"] * other["mass"] + last["position"][:, 1]
    total = np.sum(whole["mass"] + start["mass"]) + both["mass"][5] + np.sum(both["position"])
    return total + both.shape[0] + np.size(z)
"""


def test_copies_of_a_structured_array_are_structured_arrays(tmp_path):
    (tmp_path / "copied_fields.py").write_text(COPIED)
    copy, h = pb.adopt(tmp_path / "copied_fields.py"), 1e-6
    value, gradient = pb.value_and_grad(copy.run)(0.7)
    assert value == copy.run(0.7)
    np.testing.assert_allclose(gradient, (copy.run(0.7 + h) - copy.run(0.7 - h)) / (2 * h), rtol=1e-8)


def test_a_structured_array_is_refused_where_it_would_be_a_plain_one(tmp_path):
    text = "import numpy as np\n\ndef run(c, take):\n    z = np.zeros(2, dtype=[('m', float)])\n    z['m'] = {}\n"
    text += "    return take(z), c * np.sum(z['m'])\n"
    for k, what in enumerate(("c", "3.0")):
        (tmp_path / f"plain_fields_{k}.py").write_text(text.format(what))
    traced, plain = (pb.adopt(tmp_path / f"plain_fields_{k}.py").run for k in range(2))
    with pytest.raises(pb.ConversionError, match="would drop the derivative"):
        pb.grad(lambda c: traced(c, np.asarray)[1])(2.0)
    with pytest.raises(pb.ConversionError, match=r"numpy\.sort takes no structured array with traced fields.*s\['m'\]"):
        pb.grad(lambda c: traced(c, np.sort)[1])(2.0)
    seen = []
    assert pb.grad(lambda c: plain(c, lambda z: seen.append(np.asarray(z)))[1])(2.0) == 6.0
    assert seen[0].dtype.names == ("m",)
