"""Structured arrays in adopted code: their fields hold traced values."""

import numpy as np

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
    z["mass"] *= 2
    total = 0.0
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
