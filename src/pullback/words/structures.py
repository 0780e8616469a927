"""Structures: nested dict, list, tuple, namedtuple, dataclass, attrs class and None, flattened to leaves by optree.

Dataclasses and attrs classes are registered on first sight, in a namespace of our own, so nobody else's registry
changes.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import optree

from pullback.words.errors import StructureError

NAMESPACE = "pullback"
_registered: set[type] = set()


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a structure in a fixed order, and its definition."""
    leaves, definition = optree.tree_flatten(tree, namespace=NAMESPACE)
    if _register_classes(leaves):
        return flatten(tree)
    return list(leaves), definition


def matched(tree: Any, definition: Any) -> list[Any] | None:
    """The parts of a structure at the leaves of ``definition``, where a part may be None; None in the place of the list
    where the structure is another one."""
    leaves, own = flatten(tree)
    if own == definition:
        return leaves
    try:
        parts = list(definition.flatten_up_to(tree))
    except ValueError:
        return None
    return parts if all(part is None or optree.tree_is_leaf(part, namespace=NAMESPACE) for part in parts) else None


def unflatten(definition: Any, leaves: Sequence[Any]) -> Any:
    """The structure of ``definition`` with these leaves."""
    return optree.tree_unflatten(definition, leaves)


def paths(tree: Any) -> list[str]:
    """How a person would reach each leaf: ``['speed'][0]``; an empty string for a bare leaf."""
    return [optree.PyTreeAccessor(accessor).codify("") for accessor in optree.tree_accessors(tree, namespace=NAMESPACE)]


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The structure of ``tree``, each leaf replaced by what ``function`` makes of it and of what ``others`` hold in its
    place.

    A structure is nested dicts, lists, tuples, namedtuples, dataclasses, attrs classes and None, as every transform
    takes and returns them: ``map_leaves(lambda p, g: p - 0.1 * g, params, grads)`` is a step against a gradient. Where
    one of ``others`` has None for a leaf, as a gradient has for an integer, the function gets None. Raises
    :class:`StructureError` where one has another structure.
    """
    leaves, definition = flatten(tree)
    return unflatten(definition, list(map(function, leaves, *(_of_form(definition, other) for other in others))))


def _of_form(definition: Any, tree: Any) -> list[Any]:
    leaves = matched(tree, definition)
    if leaves is None:
        raise StructureError(f"map_leaves got the structures {definition} and {flatten(tree)[1]}; give two of one form")
    return leaves


def _register_classes(leaves: list[Any]) -> bool:
    """Register the dataclasses and attrs classes among the leaves; True when there is a new one."""
    any_new = False
    for leaf in leaves:
        cls = type(leaf)
        if cls in _registered or isinstance(leaf, type):
            continue
        if dataclasses.is_dataclass(cls):
            names = tuple(f.name for f in dataclasses.fields(cls) if f.init)
        elif attrs.has(cls) and cls.__module__.split(".")[0] != "pullback":
            names = tuple(a.alias for a in attrs.fields(cls) if a.init)
        else:
            continue
        _register(cls, names, tuple(a.name for a in attrs.fields(cls) if a.init) if attrs.has(cls) else names)
        any_new = True
    return any_new


def _register(cls: type, init_names: tuple[str, ...], names: tuple[str, ...]) -> None:
    optree.register_pytree_node(
        cls,
        lambda node: ([getattr(node, name) for name in names], None, names),
        lambda _, children: cls(**dict(zip(init_names, children, strict=True))),
        namespace=NAMESPACE,
    )
    _registered.add(cls)
