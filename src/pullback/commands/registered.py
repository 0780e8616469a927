"""``registered``: the primitives that are there, by whom they were declared, and what each of their rules saves."""

from attrs import asdict, frozen

from pullback.instruments.inspect.tables import Column, Table
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Composite, Primitive
from pullback.words.plugins import PRIMITIVES, entry_points


@frozen
class Registered:
    """One primitive, or one function that is made of some. ``saves`` has for each operand what its rule keeps, the
    alternatives after it; an operand without a derivative is not in it, and a function made of primitives has none."""

    name: str
    by: str
    """The library or the plugin that declares it."""
    serves: tuple[str, ...]
    """The functions of NumPy that mean it."""
    saves: dict[str, tuple[str, ...]]
    operands: tuple[str, ...] = ()
    params: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return asdict(self)


def registered(name: str | None = None) -> list[Registered]:
    """What the registry and the installed plugins declare, in the order of names; with ``name`` those that have it in
    theirs or serve it."""
    registry.complete()
    plugins = {
        entry.name: point.module.partition(".")[0] for point in entry_points(PRIMITIVES) for entry in point.load()
    }
    rows = sorted((_of(declared, plugins) for declared in registry.names.values()), key=lambda row: row.name)
    if name is None:
        return rows
    wanted = name.removeprefix("np.").removeprefix("numpy.")
    exact = [row for row in rows if wanted == row.name or f"numpy.{wanted}" in row.serves]
    return exact or [row for row in rows if wanted in row.name]


def registered_table(rows: list[Registered]) -> Table:
    """The rows as a table."""
    cells = {
        "name": [row.name for row in rows],
        "by": [row.by for row in rows],
        "serves": [", ".join(row.serves) for row in rows],
        "saves for the pull of each operand": [_saved(row) for row in rows],
    }
    columns = tuple(Column(title, tuple(column), text=True) for title, column in cells.items())
    return Table(f"{len(rows)} declaration{'' if len(rows) == 1 else 's'}", columns)


def _saved(row: Registered) -> str:
    if not row.operands:
        return "made of primitives"
    return "; ".join(f"{operand}: {' or '.join(values)}" for operand, values in row.saves.items())


def _of(declared: Primitive | Composite, plugins: dict[str, str]) -> Registered:
    functions = {f"{getattr(f, '__module__', None) or 'numpy'}.{getattr(f, '__name__', f)}" for f in declared.serves}
    by, serves = plugins.get(declared.name, "pullback"), tuple(sorted(functions))
    if isinstance(declared, Composite):
        return Registered(declared.name, by, serves, {})
    saves = {
        operand: tuple(" and ".join(rule.values) or "nothing" for rule in rules)
        for operand, rules in declared.rules.items()
    }
    return Registered(declared.name, by, serves, saves, declared.operands, declared.params)
