"""Programs of small packages of the package index, pure NumPy and SciPy: optics, colours, money, fuzzy sets, the
atmosphere, navigation, quaternions, fits in pieces."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.external.repositories import Find

from pullback.numpy import array

AT = np.array([0.83, 0.97, 1.11])
"""Three numbers, of which each program depends on all."""
NINE = np.arange(9.0).reshape(3, 3)


def quaternions(find: Find, x: Any) -> Any:
    kind = find("pyquaternion").Quaternion
    a, b = kind(axis=[1, x[0], 0.5], angle=x[1]), kind(array=array([0.5, x[2], 0.2, 0.1])).normalised
    between, both = kind.slerp(a, b, 0.3), (a * b).inverse + a**0.5
    rotated, angles = between.rotate(np.array([1.0, 2.0, 3.0])), a.yaw_pitch_roll
    return (
        rotated @ [1.0, 2.0, 3.0] + np.sum(b.rotation_matrix * NINE) + sum(angles) + between.angle + both.norm
        + kind.log(a).vector[0] + kind.exp(b).scalar + kind.distance(a, b) + kind.sym_distance(a, b)
        + kind.log_map(a, b).norm + b.derivative([x[0], 1, 2.0])[1]
    )  # fmt: skip


def scattering(find: Find, x: Any) -> Any:
    mie, cosines = find("miepython"), np.cos(np.linspace(0, 2, 5))
    along, across = mie.S1_S2(1.33 - 0.05j * x[2], 2.0 * x[1], cosines)
    return (
        sum(mie.efficiencies_mx(1.5 - 0.1j * x[0], 3 * x[1]))
        + np.sum(np.abs(along) ** 2)
        + np.sum(np.abs(across) ** 2) * 0.1
    )


def atmosphere(find: Find, x: Any) -> Any:
    air = find("ambiance").Atmosphere(array([1000 * x[0], 12000 * x[1], 25000.0 * x[2]]))
    parts = (
        air.pressure * 1e-4, air.temperature * 0.1, air.density, air.speed_of_sound * 0.01,
        air.dynamic_viscosity * 1e4, air.mean_free_path * 1e5, air.grav_accel, air.thermal_conductivity * 10,
    )  # fmt: skip
    return sum(np.sum(part) for part in parts)


def colours(find: Find, x: Any) -> Any:
    space, rgb = find("colorspacious"), np.array([[0.2, 0.5, 0.8], [0.6, 0.3, 0.4]]) * x
    jab = space.cspace_convert(rgb, "sRGB1", "CAM02-UCS")
    seen = {"name": "sRGB1+CVD", "cvd_type": "deuteranomaly", "severity": 50}
    return (
        np.sum(jab) + np.sum(space.cspace_convert(rgb, "sRGB1", "CIELab") * np.arange(3)) * 0.1
        + np.sum(space.cspace_convert(jab, "CAM02-UCS", "sRGB1")) + np.sum(space.cspace_convert(rgb, seen, "sRGB1"))
        + space.deltaE(rgb[0], rgb[1], input_space="sRGB1") + np.sum(space.cspace_convert(rgb, "sRGB1", "JCh"))
    )  # fmt: skip


def money(find: Find, x: Any) -> Any:
    n = find("numpy_financial")
    return (
        n.pmt(0.05 * x[0], 12, 1000.0) * 1e-2 + n.npv(0.1 * x[1], array([-100, 30, 40, 50 * x[2]]))
        + n.irr(array([-100, 39 * x[0], 59, 55 * x[2], 20])) * 10 + n.fv(0.04 * x[2], 10, -100.0, -100) * 0.01
        + n.mirr(array([-100, 39 * x[0], 59, 55]), 0.05 * x[1], 0.08) * 10 + n.nper(0.05 * x[0], -100, 500.0)
        + n.rate(10, -15.0 * x[1], 100, 0) * 10 + n.ppmt(0.05 * x[0], np.array([1, 2, 3]), 12, 1000.0).sum() * 0.01
    )  # fmt: skip


def fuzzy_sets(find: Find, x: Any) -> Any:
    z, u = find("skfuzzy"), np.linspace(0, 10, 101)
    a, b = z.trimf(u, [0, 3 * x[0], 7.0]), z.gaussmf(u, 5 * x[1], 1.3 * x[2])
    whole = np.fmax(np.fmin(a, 0.6 * x[1]), np.fmin(b, 0.4))
    return (
        z.defuzz(u, whole, "centroid") + z.defuzz(u, whole, "bisector")
        + z.interp_membership(u, z.sigmf(u, 4 * x[0], 2.0), 3.3 * x[2]) + z.gbellmf(u, 2.0, 3 * x[1], 5.0).sum() * 0.1
        + z.trapmf(u, [1, 2 * x[2], 5, 8.0]).sum() * 0.1 + z.zmf(u, 1.0, 6 * x[1]).sum() * 0.1
    )  # fmt: skip


def zones(find: Find, x: Any) -> Any:
    u = find("utm")
    east, north, *_ = u.from_latlon(47.3 * x[0], 8.5 * x[1])
    latitude, longitude = u.to_latlon(4.5e5 * x[2], 5.2e6 * x[0], 32, "N")
    others, _, *_ = u.from_latlon(array([47.0, 46.0 * x[0]]), array([8.0 * x[2], 9.0]))
    return east * 1e-5 + north * 1e-6 + latitude + longitude + np.sum(others) * 1e-5


def navigation(find: Find, x: Any) -> Any:
    n = find("navpy")
    turn, q = n.angle2dcm(x[0], x[1] * 0.5, x[2] * 0.3), n.angle2quat(x[0], x[1] * 0.5, x[2] * 0.3)
    place = n.lla2ecef(45 * x[0], 8.0 * x[1], 300 * x[2])
    return (
        np.sum(turn * NINE) + sum(n.quat2angle(q[0], q[1])) + np.sum(place) * 1e-6 + sum(n.dcm2angle(turn))
        + np.sum(n.lla2ned(45 * x[0], 8.0, 100.0, 45.0, 8.0 * x[1], 90.0)) * 1e-5 + n.earthrad(45 * x[2])[0] * 1e-6
        + np.sum(array(n.ecef2lla(place)) * np.array([1, 1, 1e-3])) + np.sum(n.earthrate(30 * x[0])) * 1e4
    )  # fmt: skip


def fit_in_pieces(find: Find, x: Any) -> Any:
    kind, at = find("pwlf").PiecewiseLinFit, np.linspace(0, 10, 30)
    y = np.sin(at) * x[0] + 0.1 * at * x[1]
    line, curve = kind(at, y), kind(at, y, degree=2)
    left = line.fit_with_breaks(array([0, 3.0 * x[2], 6, 10.0])) + curve.fit_with_breaks([0, 5.0, 10.0])
    return (
        left + line.predict(np.array([1.0, 4.0, 8.0])) @ [1.0, 2.0, 3.0] + line.slopes.sum() + line.intercepts[1]
        + line.r_squared() + line.standard_errors()[0] + line.prediction_variance(np.array([2.0, 3.0])).sum()
    )  # fmt: skip


def turns(find: Find, x: Any) -> Any:
    euler, q, a = find("transforms3d.euler"), find("transforms3d.quaternions"), find("transforms3d.affines")
    turn = euler.euler2mat(x[0], x[1], x[2], "syxz")
    one = q.mat2quat(turn)  # by eigh of a matrix of which one triangle is filled
    axis, angle = q.quat2axangle(one)
    whole = a.compose(array([x[0], 1, 2.0]), turn, array([1.1, x[1], 0.9]), array([0.1, 0.2, x[2]]))
    place, back, zooms, shears = a.decompose44(whole)
    return (
        one @ [1.0, 2.0, 3.0, 4.0] + angle + axis[0] + np.sum(place) + zooms @ [1.0, 2.0, 3.0] + np.sum(shears)
        + sum(euler.mat2euler(back, "rzyx")) + q.rotate_vector(np.array([1.0, 2.0, 3.0]), one)[1]
    )  # fmt: skip


RELEASED: dict[str, tuple[str, Callable[[Find, Any], Any]]] = {
    "pyquaternion": ("pyquaternion", quaternions),
    "miepython": ("miepython", scattering),
    "ambiance": ("ambiance", atmosphere),
    "colorspacious": ("colorspacious", colours),
    "numpy-financial": ("numpy_financial", money),
    "scikit-fuzzy": ("skfuzzy", fuzzy_sets),
    "utm": ("utm", zones),
    "NavPy": ("navpy", navigation),
    "pwlf": ("pwlf", fit_in_pieces),
    "transforms3d": ("transforms3d", turns),
}
"""Name in the index to (module, program)."""
