"""``scipy.integrate`` with derivatives; a name without one is SciPy's own."""

from scipy import integrate

from pullback_scipy.equations.flows import odeint, solve_ivp
from pullback_scipy.equations.integrals import cumulative_trapezoid, fixed_quad, quad, simpson, trapezoid
from pullback_scipy.mirroring import fall_through

__getattr__, __dir__ = fall_through(integrate, globals())
__all__ = ["cumulative_trapezoid", "fixed_quad", "odeint", "quad", "simpson", "solve_ivp", "trapezoid"]
