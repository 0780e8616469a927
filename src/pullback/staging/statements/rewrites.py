"""The rewrites of a generated function, in order: other statements of the same bits that cost less."""

from pullback.staging.statements.chains import in_chains
from pullback.staging.statements.copies import without_broadcasts, without_copies
from pullback.staging.statements.repeats import without_repeats
from pullback.staging.statements.symbols import Program, Statement
from pullback.staging.statements.tiles import without_zeros


def rewritten(
    program: Program, statements: list[Statement], kept: frozenset[int], *, told: frozenset[int], large: int
) -> list[Statement]:
    """Statements that make the values ``kept`` with the same bits. Those that make values that are ``told`` stay, since
    NumPy's warnings of them are heard; results of ``large`` bytes have arrays of their own."""
    live = without_copies(program, statements, kept, large)
    live = without_zeros(program, without_repeats(program, live, kept, told), kept)
    return in_chains(program, without_broadcasts(program, live, kept, large), kept)
