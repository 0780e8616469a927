"""Structures: nested dict, list, tuple, namedtuple, dataclass, attrs class and None, flattened to leaves by optree.

Dataclasses, attrs classes and classes that extend a named tuple are registered on first sight, in a namespace of our
own, so nobody else's registry changes.
"""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import attrs
import numpy as np
import optree

from pullback.words.errors import StructureError

NAMESPACE = "pullback"
_registered: set[type] = set()
LEAF: Any = optree.treespec_leaf(namespace=NAMESPACE)
"""The definition of a structure that is one leaf."""
NOTHING: Any = optree.treespec_none(namespace=NAMESPACE)
"""The structure of None, which has no leaves."""
LEAVES = frozenset((int, float, complex, bool, np.ndarray, np.float64, np.float32))
"""Types that are leaves, of which nothing need be asked; so are tracers, which are told by their classes."""
_looked_at: set[int] = set()
"""The hashes of the definitions that hold no class which extends a named tuple and is not registered."""


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a structure in a fixed order, and its definition."""
    if type(tree) in LEAVES or hasattr(type(tree), "__pullback_record__"):
        return [tree], LEAF
    if tree is None:
        return [], NOTHING
    leaves, definition = optree.tree_flatten(tree, namespace=NAMESPACE)
    new = _register_classes(leaves)
    if new or (definition.num_nodes > len(leaves) and _register_tuples(definition)):
        return flatten(tree)
    return list(leaves), definition


def is_flat(definition: Any) -> bool:
    """Whether a structure is a tuple of leaves."""
    return bool(definition == optree.tree_structure((0,) * definition.num_leaves, namespace=NAMESPACE))


def flattened(tree: Any, definition: Any) -> tuple[list[Any], Any]:
    """As :func:`flatten`, sooner where the structure is that of ``definition``, which is flat."""
    if type(tree) is tuple and len(tree) == definition.num_leaves:
        for leaf in tree:
            if type(leaf) not in LEAVES and not hasattr(type(leaf), "__pullback_record__"):
                break
        else:
            return list(tree), definition
    return flatten(tree)


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
    if definition is LEAF:
        [leaf] = leaves
        return leaf
    return optree.tree_unflatten(definition, leaves)


def paths(tree: Any) -> list[str]:
    """How a person would reach each leaf: ``['speed'][0]``; an empty string for a bare leaf."""
    return list(_paths_of(flatten(tree)[1]))


@lru_cache(maxsize=64)
def _paths_of(definition: Any) -> tuple[str, ...]:
    return tuple(optree.PyTreeAccessor(accessor).codify("") for accessor in definition.accessors())


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The structure of ``tree``, each leaf replaced by what ``function`` makes of it and of what ``others`` hold in its
    place.

    A structure is nested dicts, lists, tuples, namedtuples, dataclasses, attrs classes and None, as every transform
    takes and returns them.

    Parameters
    ----------
    function
        Takes a leaf of each.
    tree
        The structure.
    *others
        Structures of the same form. Where one has None for a leaf, as a gradient has for an integer, the function gets
        None.

    Returns
    -------
    A new structure.

    Raises
    ------
    StructureError
        Where one of ``others`` has another structure.

    Example
    -------
    >>> import pullback as pb
    >>> params, grads = {"w": 1.0, "b": 2.0}, {"w": 10.0, "b": -10.0}
    >>> pb.map_leaves(lambda p, g: p - 0.1 * g, params, grads)
    {'w': 0.0, 'b': 3.0}
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
        cls: Any = type(leaf)
        if cls in LEAVES or cls in _registered or isinstance(leaf, type):
            continue
        if _has_fields(cls):
            kind: Any = cls  # optree knows collections by its types
            optree.register_pytree_node(kind, _parts, partial(_rebuilt, cls), namespace=NAMESPACE)
            _registered.add(cls)
            any_new = True
    return any_new


@lru_cache(1024)
def _has_fields(cls: Any) -> bool:
    """Whether a class is a dataclass, or an attrs class of somebody else's, or of ours around traced values."""
    return dataclasses.is_dataclass(cls) or (
        attrs.has(cls) and (cls.__module__.split(".")[0] != "pullback" or hasattr(cls, "holds_tracer"))
    )


def _register_tuples(definition: Any) -> bool:
    """Register the classes that extend a named tuple; True when there is a new one.

    To optree they are named tuples, which it rebuilds through the class: a ``__new__`` of the user's would run again,
    and attributes be lost.
    """
    key = hash(definition)
    if key in _looked_at:
        return False
    _looked_at.add(key)
    any_new, inner = False, [definition]
    while inner:
        node = inner.pop()
        inner += node.children()
        cls: Any = node.type
        extends = isinstance(cls, type) and issubclass(cls, tuple) and cls.__bases__ != (tuple,)
        if extends and hasattr(cls, "_fields") and cls not in _registered:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that optree would know it without
                optree.register_pytree_node(
                    cls,
                    _tuple_parts,
                    partial(_rebuilt_tuple, cls),
                    path_entry_type=optree.GetAttrEntry,
                    namespace=NAMESPACE,
                )
            _registered.add(cls)
            any_new = True
    return any_new


def _tuple_parts(node: Any) -> tuple[list[Any], tuple[str, ...], tuple[str, ...]]:
    """The items of a named tuple, and what else is set on it."""
    others = tuple(sorted(getattr(node, "__dict__", {})))
    return [*node, *(getattr(node, name) for name in others)], others, (*node._fields, *others)


def _rebuilt_tuple(cls: type, others: tuple[str, ...], children: Sequence[Any]) -> Any:
    """A named tuple of these items and attributes. The user's constructor is not run."""
    size = len(children) - len(others)
    node: Any = tuple.__new__(cls, children[:size])
    for name, child in zip(others, children[size:], strict=True):
        object.__setattr__(node, name, child)
    return node


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
        raise StructureError(
            f"{cls.__name__} cannot be taken apart and rebuilt: {error}; use a plain dataclass, or a dict"
        ) from None
    for name, child in zip(names, children, strict=True):
        object.__setattr__(node, name, child)
    return node
