"""The core's families that most programs never call: imported at the first function that the registry does not find.

Kept apart from :data:`pullback.primitives.CORE` for the sake of ``import pullback``, and for no other reason.
"""

from pullback.declare import Composite, Primitive

RARE: tuple[Primitive | Composite, ...] = ()
