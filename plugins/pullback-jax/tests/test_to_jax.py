"""A NumPy function in JAX's programs: the gradients are JAX's own for the same program, under JAX's transforms."""

import re
import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

jax = pytest.importorskip("jax", reason="JAX is not installed")
to_jax = pytest.importorskip("pullback_jax", reason="pullback-jax is not installed").to_jax
jnp = jax.numpy

POLICIES = {"save-all": None, "recompute": pb.Recompute(), "binomial": pb.Binomial(2)}


@pytest.fixture(autouse=True)
def of_64_bits():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def array(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def network(np, x, layers):
    """The same text for NumPy and for JAX."""
    for weights, bias in layers[:-1]:
        x = np.tanh(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def layers_of(sizes):
    return [(array(a, b, seed=k), array(b, seed=k + 10)) for k, (a, b) in enumerate(pairwise(sizes))]


def heat(state, conductivity):
    def step(k, u):
        return u + 0.1 * conductivity * (np.roll(u, 1) - 2 * u + np.roll(u, -1))

    return pb.fori_loop(0, 12, step, state)


def test_a_training_loop_ends_where_jaxs_own_ends():
    x, wanted = array(7, 3, seed=5), array(7, 2, seed=6)
    ends = []
    for f in (lambda x, layers: network(jnp, x, layers), to_jax(lambda x, layers: network(np, x, layers))):
        layers = layers_of([3, 5, 4, 2])
        gradient = jax.jit(jax.grad(lambda layers, f=f: jnp.mean((f(x, layers) - wanted) ** 2)))
        for _ in range(10):
            layers = jax.tree.map(lambda p, g: p - 0.1 * g, layers, gradient(layers))
        ends.append(layers)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), *ends)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_gradient_has_the_bits_of_pullbacks_own_under_each_policy(policy):
    given = array(16, seed=1), array(16, seed=2)
    seed = np.asarray(array(16, seed=3))
    _, pull = jax.vjp(to_jax(heat, policy=policy), *given)
    mine = pb.vjp(heat, *map(np.asarray, given))[1](seed)
    assert [np.asarray(g).tobytes() for g in pull(jnp.asarray(seed))] == [g.tobytes() for g in mine]


TRANSFORMS = {
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "reverse of reverse": lambda f: jax.jacrev(jax.grad(f)),
    "jit of reverse of reverse": lambda f: jax.jit(jax.jacrev(jax.grad(f))),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: jax.grad(lambda x: jnp.sum(jax.vmap(f)(jnp.stack([x, 2 * x])))),
    "scan": lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, _: (c + f(c) * 0.1, None), x, None, length=3)[0][0]),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_give_what_they_give_of_jaxs_own_function(transform):
    x = array(4)
    ours, theirs = (
        transform(f)(x) for f in (to_jax(lambda x: np.sum(np.sin(x) * x**2)), lambda x: jnp.sum(jnp.sin(x) * x**2))
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_complex_gradients_are_jaxs():
    z = array(3) + 1j * array(3, seed=1)
    ours = jax.grad(to_jax(lambda z: np.sum(np.abs(z) ** 2 * np.real(z**3))))(z)
    np.testing.assert_allclose(ours, jax.grad(lambda z: jnp.sum(jnp.abs(z) ** 2 * jnp.real(z**3)))(z), rtol=1e-12)


def test_structures_other_arguments_and_integers():
    def f(x, p, *, times=1):
        y = x[p["index"]] * p["w"] * times
        return {"y": y, "times": times, "parts": (np.sum(y), None)}

    p = {"index": jnp.array([2, 0]), "w": array(2)}
    out = to_jax(f)(array(3), p, times=3)
    assert out["times"] == 3
    assert out["parts"][1] is None
    gradient = jax.grad(lambda x: to_jax(f)(x, p, times=3)["parts"][0])(array(3))
    np.testing.assert_allclose(gradient, [3 * p["w"][1], 0, 3 * p["w"][0]])
    # The shape of what a mask picks is known where the mask is.
    assert [to_jax(lambda x, m: x[m])(array(3), jnp.array(m)).shape for m in ([True, False, False], [True] * 3)] == [
        (1,),
        (3,),
    ]


def test_only_what_is_asked_is_differentiated():
    seen = []

    def watched(x, w):
        seen.append((isinstance(x, pb.Tracer), isinstance(w, pb.Tracer)))
        return np.sum(x * w)

    jax.grad(to_jax(watched, out=jax.ShapeDtypeStruct((), float)), argnums=1)(array(3), array(3))
    assert seen == [(False, False), (False, True)]


def test_without_64_bits_results_are_rounded():
    jax.config.update("jax_enable_x64", False)
    x = jnp.ones(3, np.float32)
    f = to_jax(lambda x: x * np.array([1.0, 2.0, 3.0]))
    assert f(x).dtype == np.float32
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(f(x) ** 2)))(x)
    assert gradient.dtype == np.float32
    assert gradient.tolist() == [2, 8, 18]


def branch(x):
    return x * 2 if pb.value(x)[0] > 0 else x


def test_a_program_that_reads_values_is_told():
    with pytest.raises(pb.ShapesOnlyError, match="a value is needed") as caught:
        to_jax(branch)(jnp.ones(2))
    assert "give out=" in caught.value.__notes__[0]
    told = to_jax(branch, out=jax.ShapeDtypeStruct((2,), float))
    assert jax.jit(jax.grad(lambda x: jnp.sum(told(x))))(jnp.ones(2)).tolist() == [2, 2]


def test_another_shape_than_told_is_an_error():
    with pytest.raises(Exception, match=r"expected arrays of shapes \[\(3,\)\], got \[\(2,\)\]: correct out="):
        to_jax(branch, out=jax.ShapeDtypeStruct((3,), float))(jnp.ones(2)).block_until_ready()


def test_another_kind_of_dtype_than_told_is_an_error():
    for made, told in ((lambda x: x * 1j, float), (lambda x: x * 2.5, int)):
        with pytest.raises(Exception, match=r"expected an array of dtype .*: correct out="):
            to_jax(made, out=jax.ShapeDtypeStruct((2,), told))(jnp.ones(2)).block_until_ready()


def test_numbers_and_arrays_of_numpy_have_gradients():
    f = to_jax(lambda a, x: a * x)
    assert float(jax.grad(lambda a: jnp.sum(f(a, jnp.ones(3))))(2.0)) == 3.0
    assert jax.grad(lambda a: jnp.sum(f(a, jnp.ones(3))))(np.ones(3)).tolist() == [1, 1, 1]


def test_an_array_of_numpy_may_be_changed_before_the_backward():
    scale = np.ones(3)
    _, pull = jax.vjp(lambda x: to_jax(lambda x, a: x * a)(x, scale), jnp.ones(3))
    scale[:] = 5.0
    assert pull(jnp.ones(3))[0].tolist() == [1, 1, 1]


def test_dtypes_that_numpy_does_not_have_are_refused_by_name():
    for made in (jnp.ones(2, jnp.bfloat16), jax.random.key(0)):
        with pytest.raises(TypeError, match=r"array 1 of <lambda> is of dtype .*, which NumPy does not have: pass"):
            to_jax(lambda x, y: x)(jnp.ones(2), made)


def test_large_arrays_pass():
    x = jnp.ones(1_000_000)
    assert float(jax.jit(jax.grad(to_jax(lambda x: np.sum(x * x))))(x)[0]) == 2.0


def test_forward_mode_is_refused_by_jax():
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(to_jax(lambda x: x * x), (jnp.ones(2),), (jnp.ones(2),))


def test_the_example_of_the_readme_runs(tmp_path):
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    (tmp_path / "example.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), "utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
