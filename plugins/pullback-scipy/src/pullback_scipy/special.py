"""``scipy.special`` with derivatives: its universal functions, which have them under either name, and those functions
that convert their arguments before NumPy could tell. A name without a derivative is SciPy's own.
"""

from scipy import special

from pullback_scipy.mirroring import fall_through
from pullback_scipy.ufuncs.folds import log_softmax, logsumexp, multigammaln, polygamma, softmax

__getattr__, __dir__ = fall_through(special, globals())
__all__ = ["log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"]
