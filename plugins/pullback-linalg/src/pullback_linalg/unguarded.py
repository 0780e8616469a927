"""How the primitives of this plugin are declared: their calls are not looked at, since its tests check each of them on
operands of each kind."""

from functools import partial

import pullback as pb

primitive = partial(pb.primitive, guarded=False)
