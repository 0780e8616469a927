"""The figures to hold: for each row that has one, the greatest ``x``."""

from attrs import frozen

SAVE_ALL, BINOMIAL = "500 steps, save-all", "500 steps, Binomial(20)"
KINDS, STAGED, AGAIN = ("const", "traced", "scalar"), "pullback, @pb.staged", "pullback, after 400 calls"


@frozen
class Limit:
    """The greatest ``x`` of the row of this work and candidate, over this other one."""

    work: str
    over: str
    at_most: float
    candidate: str = "pullback"
    unit: str = " x"

    @property
    def text(self) -> str:
        """What the figure is called."""
        work = self.work.removesuffix(f", beside {self.over}")
        return f"{work}: {self.candidate}" + (f" over {self.over}" if self.unit == " x" else "")


def of_loops() -> list[Limit]:
    """Loops over adjoints by hand, and over jax."""
    waves = (
        (f"wave 256^2, {SAVE_ALL}", 1.1),
        ("wave 1024^2, 60 steps, save-all", 1.1),
        (f"wave 256^2, {BINOMIAL}", 1.2),
    )
    forms = ("pullback", "pullback, pb.steps")
    small = ((1000, "save-all", 1.3), (1000, "Binomial(20)", 1.6), (10, "save-all", 2.0), (10, "Binomial(20)", 3.0))
    numba = "pullback, numba"
    scan, checkpointed = "jax scan", "equinox checkpointed(20)"
    return [
        *(Limit(work, "hand", most, form) for work, most in waves for form in forms),
        Limit(f"wave 256^2, {SAVE_ALL}", "hand", 0.5, numba),
        Limit(f"wave 256^2, {BINOMIAL}", "hand", 0.55, numba),
        Limit(f"wave 256^2, {SAVE_ALL}, beside {scan}", scan, 0.65, numba),
        Limit(f"wave 256^2, {BINOMIAL}, beside {checkpointed}", checkpointed, 0.75, numba),
        *(Limit(f"1000 steps of {n} elements, {policy}", "hand", most) for n, policy, most in small),
        Limit("1000 steps of ten kinds, 10 elements", "pullback, staging off", 1.05),
        *(Limit("LSTM 16 x 64, 200 steps", "hand", 1.2, form) for form in (*forms, "pullback, scan")),
    ]


def of_programs() -> list[Limit]:
    """Programs without a loop function over the work by hand and over other libraries."""
    eager = (("hand", 2.5), ("torch", 0.4), ("autograd", 0.22))
    blocks = (("1e5", 0.9), ("1e6", 0.85), ("1e7", 0.75))
    return [
        *(Limit(f"chain, {kind} operands", "hand", 1.8, STAGED) for kind in KINDS),
        *(Limit(f"chain, {kind} operands", over, most) for kind in KINDS for over, most in eager),
        *(Limit(f"chain, {kind} operands", "hand", 2.5, AGAIN) for kind in KINDS),
        *(
            Limit(f"elementwise, {n} elements, {kind} operands", "hand", most, candidate)
            for n, staged in blocks
            for kind in ("scalar", "traced")
            for candidate, most in (("pullback", 1.3), (STAGED, staged))
        ),
        Limit("GMM d 10, K 25, n 1000", "torch", 1.0),
        Limit("MLP float32, batch 128", "hand", 1.15, STAGED),
    ]


def of_derivatives() -> list[Limit]:
    """Small derivatives that are asked for again and again."""
    nested = (("grad", 10.0), ("jvp", 10.0), ("reverse over reverse", 30.0), ("forward over reverse", 30.0))
    return [
        Limit("grad of x * x on a number", "np.add", 25.0),
        *(Limit(f"hand tracking's Jacobian, {n} points", "residuals", 25.0) for n in (100, 1000)),
        *(Limit(f"potential, {what}", "plain", most, STAGED) for what, most in nested),
        *(
            Limit(f"recorded minus plain, {kind}", "u * v", 4.0)
            for kind in ("np.sum", "@", "fancy read", "w[s] += a", "where")
        ),
    ]


LIMITS = (
    *of_loops(),
    *of_programs(),
    *of_derivatives(),
    # two threads at least 1.5 times as fast
    Limit("elementwise, 1e7 elements, in blocks, wall time", "one thread", 0.667, "two threads"),
    Limit("wave 1024^2, 60 steps, numba, wall time", "one thread", 1.0, "two threads"),
    Limit("wave 256^2, 4000 steps, Binomial(20), RSS above import", "MB", 30.0, "pullback, pb.steps", " MB"),
    Limit("wave demo, save-all gradient", "forward", 3.0),
    *(
        Limit(f"making the stage of 100 operations, {what}", "ms", 20.0, candidate, " ms")
        for what, candidate in (
            ("a step of fori_loop, save-all", "pullback"),
            ("a step of fori_loop, Binomial(20)", "pullback"),
            ("a function", STAGED),
        )
    ),
)
