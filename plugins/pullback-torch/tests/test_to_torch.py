"""A NumPy function in torch's graph: the gradients are torch's own for the same program, and what torch promises of a
graph's nodes holds."""

import re
import runpy
import weakref
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
to_torch = pytest.importorskip("pullback_torch", reason="pullback-torch is not installed").to_torch

# torch.func warns of its own insides.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")

POLICIES = {"save-all": None, "recompute": pb.Recompute(), "binomial": pb.Binomial(2)}


def double(*shape, seed=0, requires_grad=True):
    made = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=made).requires_grad_(requires_grad)


def network(np, x, layers):
    """The same text for NumPy and for torch."""
    for weights, bias in layers[:-1]:
        x = np.tanh(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def layers_of(sizes):
    return [(double(a, b, seed=k), double(b, seed=k + 10)) for k, (a, b) in enumerate(pairwise(sizes))]


def heat(state, conductivity):
    def step(k, u):
        return u + 0.1 * conductivity * (np.roll(u, 1) - 2 * u + np.roll(u, -1))

    return pb.fori_loop(0, 12, step, state)


def test_a_training_loop_ends_where_torchs_own_ends():
    x, wanted = double(7, 3, seed=5, requires_grad=False), double(7, 2, seed=6, requires_grad=False)
    ends = []
    for f in (lambda x, layers: network(torch, x, layers), to_torch(lambda x, layers: network(np, x, layers))):
        layers = layers_of([3, 5, 4, 2])
        optimiser = torch.optim.Adam([p for pair in layers for p in pair], lr=0.05)
        for _ in range(20):
            optimiser.zero_grad()
            loss = torch.mean((f(x, layers) - wanted) ** 2)
            loss.backward()
            optimiser.step()
        ends.append([p.detach() for pair in layers for p in pair])
    for theirs, ours in zip(*ends, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_gradient_has_the_bits_of_pullbacks_own_under_each_policy(policy):
    state, conductivity = double(16, seed=1), double(16, seed=2)
    torch.sum(to_torch(heat, policy=policy)(state, conductivity) ** 2).backward()
    mine = pb.grad(lambda u, c: np.sum(heat(u, c) ** 2), (0, 1))(state.detach().numpy(), conductivity.detach().numpy())
    assert [state.grad.numpy().tobytes(), conductivity.grad.numpy().tobytes()] == [g.tobytes() for g in mine]


CASES = {
    "smooth": (lambda x, y: np.sin(x) * y + np.sum(x * y), (double(4), double(4, seed=1))),
    "a loop": (heat, (double(6), double(6, seed=1))),
    "complex": (
        lambda z: z**3 * np.conj(z) + np.abs(z) ** 2,
        (torch.randn(3, dtype=torch.complex128).requires_grad_(),),
    ),
    "complex and real": (
        lambda z, x: np.real(z * np.exp(1j * x)),
        (torch.randn(3, dtype=torch.complex128).requires_grad_(), double(3)),
    ),
    "an argument given back": (lambda x: x, (double(3),)),
    "a number of each": (lambda x: {"a": np.sum(x), "b": [x[0], x[::-1]]}, (double(3),)),
    "without axes": (lambda x: x * x * x, (torch.tensor(1.5, dtype=torch.float64, requires_grad=True),)),
}


@pytest.mark.parametrize(("f", "given"), CASES.values(), ids=CASES)
def test_torchs_own_checks_of_gradients(f, given):
    def leaves(*tensors):
        found = []
        pb.map_leaves(found.append, to_torch(f)(*tensors))
        return tuple(found)

    assert torch.autograd.gradcheck(leaves, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(leaves, given)


def test_a_second_backward_needs_the_graph_retained():
    x = double(3)
    y = torch.sum(to_torch(np.exp)(x))
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    torch.testing.assert_close(x.grad, 2 * first, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_the_tape_is_freed_with_torchs_saved_tensors():
    y = to_torch(np.exp)(double(3))
    tape = weakref.ref(y.grad_fn.saved_tensors[-1].pull)
    assert tape() is not None
    torch.sum(y).backward()
    assert tape() is None


def test_a_change_in_place_before_the_backward_is_torchs_error():
    x, w = double(3), double(3, seed=1)
    y = torch.sum(to_torch(lambda x, w: x * w)(x, w))
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_result_can_be_changed_in_place_without_changing_an_argument():
    x = double(3)
    for f in (lambda x: x, lambda x: x.reshape(3, 1), np.exp):
        with torch.no_grad():
            kept = x.clone()
            to_torch(f)(x).add_(1)
            torch.testing.assert_close(x, kept, rtol=0, atol=0)
        y = to_torch(np.exp)(x)
        torch.sum(y.mul_(2)).backward()
        torch.testing.assert_close(x.grad, 2 * torch.exp(x), rtol=1e-15, atol=0)
        x.grad = None


def test_nothing_is_recorded_where_nothing_requires_a_gradient():
    seen = []

    def watched(x):
        seen.append(isinstance(x, pb.Tracer))
        return x * 2

    x = double(3)
    to_torch(watched)(x.detach())
    with torch.no_grad():
        assert not to_torch(watched)(x).requires_grad
    to_torch(watched)(x)
    assert seen == [False, False, True]


def test_what_is_no_tensor_comes_back_as_it_is_and_integers_have_no_gradient():
    x = double(3)
    out = to_torch(lambda x, n, kind: {"y": x * n, "n": n, "kind": kind, "most": np.argmax(x)})(x, 2, kind="double")
    assert (out["n"], out["kind"], out["most"].dtype, out["most"].requires_grad) == (2, "double", torch.int64, False)
    torch.sum(out["y"]).backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_an_integer_tensor_is_a_constant():
    x, index = double(5), torch.tensor([4, 0])
    torch.sum(to_torch(lambda x, k: x[k])(x, index)).backward()
    assert x.grad.tolist() == [1, 0, 0, 0, 1]


def test_memory_is_shared_and_read_only():
    x, seen = double(4), []
    to_torch(lambda x: seen.append(pb.value(x)) or np.sum(x))(x.detach())
    assert np.shares_memory(seen[0], x.detach().numpy())

    def writes(x):
        x[0] = 1.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        to_torch(writes)(x.detach())
    with pytest.raises(pb.WriteError, match="read-only"):
        to_torch(writes)(x)


def test_functions_of_torch_func():
    q, x = to_torch(lambda x: np.sum(x**3)), double(3).detach()
    torch.testing.assert_close(torch.func.grad(q)(x), 3 * x**2)
    torch.testing.assert_close(torch.func.hessian(q)(x), torch.diag(6 * x))
    torch.testing.assert_close(
        torch.func.vmap(torch.func.grad(q))(torch.stack([x, 2 * x])), torch.stack([3 * x**2, 12 * x**2])
    )
    torch.testing.assert_close(torch.func.jvp(q, (x,), (x,)), (torch.sum(x**3), 3 * torch.sum(x**3)))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: torch.zeros(2, dtype=torch.bfloat16), r"tensor 0 of <lambda> is a tensor of bfloat16.*\.float\(\)"),
        (lambda: torch.zeros(2, device="meta"), r"tensor 0 of <lambda> is a tensor on meta.*\.cpu\(\)"),
        (lambda: torch.zeros(2).to_sparse(), r"layout torch.sparse_coo.*\.to_dense\(\)"),
        (lambda: torch.zeros(2).to(torch.float8_e4m3fn), r"tensor 0 of <lambda> is a tensor that NumPy cannot read"),
    ],
)
def test_what_numpy_cannot_read_is_refused_by_name(made, message):
    with pytest.raises(TypeError, match=message):
        to_torch(lambda x: x)(made())


def test_batched_cotangents_are_refused_with_what_to_write():
    with pytest.raises(TypeError, match=r"cannot read.*write torch\.func\.vmap, jacrev"):
        torch.autograd.functional.jacobian(to_torch(np.sin), double(3), vectorize=True)


def test_what_a_program_gives_when_it_is_executed_again_is_compared():
    scale, random = np.ones(3), np.random.default_rng(0)
    x = double(3)
    y = to_torch(lambda x: np.sin(x) * scale)(x)
    scale[:] = 5.0
    torch.testing.assert_close(*torch.autograd.grad(y.sum(), x, retain_graph=True), torch.cos(x).detach())
    with pytest.raises(pb.ReplayError, match=r"<lambda> gave another gradient when it was executed again"):
        torch.autograd.grad(y.sum(), x, create_graph=True)
    drawn = to_torch(lambda x: np.sum(np.sin(x) * random.normal(size=3)))
    with pytest.raises(pb.ReplayError, match=r"<lambda> gave another result.*pass them as tensors"):
        torch.func.grad(drawn)(x.detach())


def test_a_buffer_that_the_program_keeps_is_copied_and_no_other_array_is():
    buffer, places = np.zeros(3), []

    def kept(x):
        return np.multiply(x, 2, out=buffer)

    def made(x):
        out = x * 2
        places.append(out.__array_interface__["data"][0])
        return out.reshape(3, 1)

    x = double(3, requires_grad=False)
    first = to_torch(kept)(x)
    to_torch(kept)(5 * x)
    torch.testing.assert_close(first, 2 * x, rtol=0, atol=0)
    assert to_torch(made)(x).data_ptr() == places[0]


def test_errors_of_the_program_name_its_line():
    def wrong(x):
        return np.sum(np.asarray(x))

    with pytest.raises(pb.ConversionError, match=r"test_to_torch\.py"):
        to_torch(wrong)(double(3))


def test_the_example_of_the_readme_runs(tmp_path):
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    (tmp_path / "example.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), "utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
