"""Structures: nested dict, list, tuple, namedtuple, dataclass, attrs class and None, flattened to leaves by optree.

Dataclasses and attrs classes are registered on first sight, in a namespace of our own, so nobody else's registry
changes.
"""

import dataclasses
from collections.abc import Sequence
from functools import cached_property, partial
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
    """The parts of a structure at the leaves of ``definition``, None where it says None; no list where it has
    another structure."""
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


def map_leaves(function: Any, tree: Any) -> Any:
    """The structure with ``function`` applied to every leaf."""
    leaves, definition = flatten(tree)
    return unflatten(definition, [function(leaf) for leaf in leaves])


def _register_classes(leaves: list[Any]) -> bool:
    """Register the dataclasses and attrs classes found among leaves; True when there were new ones."""
    found = False
    for leaf in leaves:
        cls = type(leaf)
        if cls in _registered or isinstance(leaf, type):
            continue
        if dataclasses.is_dataclass(cls) or (attrs.has(cls) and cls.__module__.split(".")[0] != "pullback"):
            kind: Any = cls  # optree knows collections by its types
            optree.register_pytree_node(kind, _parts, partial(_rebuilt, cls), namespace=NAMESPACE)
            _registered.add(cls)
            found = True
    return found


def _parts(node: Any) -> tuple[list[Any], tuple[str, ...], tuple[str, ...]]:
    """All that an instance holds: its fields, those too that its constructor derives, and what else is set on it.

    A cached property is left out. It was computed from the fields as they were, and computes itself again.
    """
    declared = dataclasses.fields(node) if dataclasses.is_dataclass(node) else attrs.fields(type(node))
    names = [field.name for field in declared if hasattr(node, field.name)]
    others = sorted(getattr(node, "__dict__", {}).keys() - {*names})
    names += [name for name in others if not isinstance(getattr(type(node), name, None), cached_property)]
    return [getattr(node, name) for name in names], tuple(names), tuple(names)


def _rebuilt(cls: type, names: tuple[str, ...], children: Sequence[Any]) -> Any:
    """An instance with these attributes. The user's constructor is not run: it might convert, derive or refuse them."""
    try:
        node: Any = object.__new__(cls)
    except TypeError as error:  # a class that also extends a built-in one, as dict
        message = f"{cls.__name__} cannot be taken apart and rebuilt: {error}; use a plain dataclass, or a dict"
        raise StructureError(message) from None
    for name, child in zip(names, children, strict=True):
        object.__setattr__(node, name, child)
    return node
