"""Where the values of one step are found in the next, for steps of one pattern in a row."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from attrs import frozen

from pullback.programs.replay.needed_values import StepNeeds
from pullback.programs.replay.step_recipes import FAR, HORIZON, StepRecipes


def idents_of(recipes: StepRecipes, codes: Sequence[int], step: int) -> list[int]:
    """The ids of what stands so in the recipes of a step."""
    start, ident = recipes.cuts[step], recipes.ident
    return [k + start if k >= FAR else ident(k, start) for k in codes]


@frozen(eq=False)
class Route:
    """The way from one step to the next, where both have the same needs."""

    keys: tuple[int, ...]
    """What enters such a step and is read, here or later, as it stands in the recipes: the *state*."""
    length: int
    """The records of the step."""
    read: Callable[[Any], tuple[Any, ...]]
    """What the functions take, of the state."""
    pick: Callable[[Any], tuple[Any, ...]]
    """The next state, of what the functions return and the state."""
    returned: tuple[int, ...]

    def entering(self, env: dict[int, Any], recipes: StepRecipes, start: int) -> tuple[Any, ...]:
        """The state of the step that starts at ``start``."""
        return tuple(env.get(recipes.ident(k, start)) for k in self.keys)

    def taken(self, env: dict[int, Any], start: int) -> None:
        """The values from before the step leave the environment: the state alone has them."""
        for k in self.keys:
            if k >= FAR:
                env.pop(start + k, None)

    def left(
        self, env: dict[int, Any], recipes: StepRecipes, start: int, returned: Sequence[Any], state: Sequence[Any]
    ) -> None:
        """The environment has what there is after the step that starts at ``start``."""
        env.update(zip([recipes.ident(k, start) for k in self.keys], state, strict=True))
        env.update(zip([start + place for place in self.returned], returned, strict=True))


def route_of(needs: StepNeeds, inputs: Sequence[int], returned: tuple[int, ...], length: int) -> Route | None:
    """The route between steps of ``length`` records; None where these values do not say all that the next step needs,
    or one of them may be read as a far one later."""
    keys = (*sorted(needs.before), *sorted(k for k, _ in needs.far))
    pool = {k: n for n, k in enumerate((*returned, *keys), -len(returned))}
    wanted = [k if k < FAR else k + length for k in keys]
    if not pool.keys() >= {*wanted, *inputs} or any(FAR <= k < length * (1 - HORIZON) for k in keys):
        return None
    at = {k: n for n, k in enumerate(keys)}
    first = len(returned)
    return Route(keys, length, picking([at[k] for k in inputs]), picking([first + pool[k] for k in wanted]), returned)


def picking(places: Sequence[int]) -> Callable[[Any], tuple[Any, ...]]:
    """What takes the values at these places."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)


def way_back(key: Any, entering: Sequence[int], gives: Sequence[int], length: int) -> tuple[int, ...] | None:
    """The places, among the cotangents that a step ``gives`` to what enters, of those that the step before takes, where
    these are the ones, ``key``, that the step itself takes; None where it takes others."""
    places, before, _ = key
    at = {k if k < FAR else k + length: n for n, k in enumerate(gives)}
    own, around = sorted(k for k in at if k >= 0), [k for k in entering if k in at]
    if (*own,) != places or (*around,) != before or len(own) + len(around) != len(at):
        return None
    return tuple(at[k] for k in (*own, *around))
