"""Keep: rules of the user say which values are kept, and where; the others are computed again."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.scheduling.machine.schedule import Schedule
from pullback.words.errors import PolicyError

KEEP: Final = "keep"
RECOMPUTE: Final = "recompute"


@frozen(repr=False)
class KeepRule:
    """What a rule is for, and what becomes of that."""

    what: Any
    how: Any

    @property
    def text(self) -> str:
        """The rule as a person writes it."""
        what = what_text(self.what)
        return what if self.how == KEEP else f"{{{what}: {self.how!r}}}"


@frozen(repr=False, init=False)
class Keep(MemoryPolicy):
    """n forward steps, and of each step the values that the rules name; what the pullbacks read besides is computed
    again from these just before it is needed.

    A rule says what it is for, and the first that fits a value decides::

        pb.Keep("potential", np.matmul)                    # keep these, compute the others again
        pb.Keep({"field": "recompute"}, others="keep")     # all but this one
        pb.Keep(np.matmul, {np.exp: Zlib(), "orbit": Disk("/scratch")})
        pb.Keep(lambda value: value.nbytes < 1_000)

    What it is for: a NumPy function or a primitive, for what that returns; the label of :func:`pullback.name`;
    ``"solve.lu"``, for what primitive ``solve`` saves as ``lu``; a function of a
    :class:`~pullback.memory.kept_rules.Value` (``made_by``, ``line``, ``labels``, ``saved_as``, ``shape``, ``dtype``,
    ``nbytes``) that says whether it fits. In a dict it stands before what becomes of the value: ``"keep"``,
    ``"recompute"``, a codec or a place of ``pullback.stores``. ``others`` says so for what the pullbacks read and no
    rule fits (``"recompute"``).

    ``outer`` is the policy between the steps of a loop function, or marked ones (default :class:`SaveAll`): of steps
    that it records, and holds or reverses, the rules say what is kept. ``Keep("field", outer=pb.Budget("200 MB"))``. A
    checkpoint is one step, and takes no other than save-all.

    A value is one with its views. What enters a step, or comes out of a loop function, is always kept. A rule that fits
    nothing, and a policy that holds no less than save-all, warn (:class:`PolicyWarning`).

    Parameters
    ----------
    *what
        The rules.
    others
        What becomes of the values that no rule fits: ``"recompute"``, ``"keep"``, a codec or a place.
    outer
        The policy between steps.

    Raises
    ------
    PolicyError
        For what is no rule, and for an ``outer`` that is no policy.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def f(x):
    ...     return np.sum(np.exp(np.sin(x) * np.cos(x)))
    >>> x = np.linspace(0.0, 1.0, 4)
    >>> bool(np.all(pb.grad(f, policy=pb.Keep(np.multiply))(x) == pb.grad(f)(x)))
    True
    """

    rules: tuple[KeepRule, ...]
    others: Any = field(default=RECOMPUTE)
    outer: MemoryPolicy = field(factory=SaveAll)

    def __init__(self, *what: Any, others: Any = RECOMPUTE, outer: MemoryPolicy | None = None) -> None:
        rules = tuple(rule for given in what for rule in _rules_of(given))
        self.__attrs_init__(rules, _as_how(others, "others"), SaveAll() if outer is None else _as_outer(outer))

    @property
    def within(self) -> "Keep":
        """What decides within a step."""
        return self

    @property
    def between(self) -> MemoryPolicy:
        """The policy between steps."""
        return self.outer

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """As the policy between steps: under save-all every step is recorded once."""
        return self.outer.begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)

    @property
    def tiers(self) -> Mapping[str, Any]:
        """The places that rules name, by the names that ``pull.report.stores`` shows."""
        hows = [(rule.how, what_text(rule.what)) for rule in self.rules] + [(self.others, "others")]
        return {**self.outer.tiers, **{text: how for how, text in hows if not isinstance(how, str)}}

    def __repr__(self) -> str:
        parts = [rule.text for rule in self.rules]
        if self.others != RECOMPUTE:
            parts.append(f"others={self.others!r}")
        if self.outer != SaveAll():
            parts.append(f"outer={self.outer!r}")
        return f"Keep({', '.join(parts)})"


def what_text(what: Any) -> str:
    """What a rule is for, in short."""
    if isinstance(what, str):
        return repr(what)
    name = getattr(what, "__name__", None) or getattr(what, "name", None) or type(what).__name__
    return "a function" if name == "<lambda>" else str(name)


def _rules_of(given: Any) -> Iterator[KeepRule]:
    pairs = given.items() if isinstance(given, Mapping) else ((given, KEEP),)
    for what, how in pairs:
        if isinstance(what, type) or not (isinstance(what, str) or callable(what)):
            raise PolicyError(
                f"Keep takes NumPy functions, primitives, labels, functions of a value, and dicts of these to what "
                f"becomes of them, got {what!r}"
            )
        yield KeepRule(what, _as_how(how, what_text(what)))


def _as_outer(outer: Any) -> MemoryPolicy:
    if not isinstance(outer, MemoryPolicy) or outer.within is not None:
        raise PolicyError(
            f"Keep takes as outer= a policy between steps, as pullback.Binomial(20) or pullback.Budget('200 MB'), got "
            f"{outer!r}"
        )
    return outer


def _as_how(how: Any, what: str) -> Any:
    known = how in (KEEP, RECOMPUTE) if isinstance(how, str) else hasattr(how, "opened") or hasattr(how, "encode")
    if not known:
        raise PolicyError(
            f"what becomes of {what} is {KEEP!r}, {RECOMPUTE!r}, or a codec or place of pullback.stores, as Zlib() and "
            f"Disk(), got {how!r}"
        )
    return how
