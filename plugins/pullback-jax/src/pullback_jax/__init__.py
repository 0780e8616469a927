"""Functions of pullback within programs of JAX: :func:`to_jax`."""

try:
    import jax  # noqa: F401 - tried, for the message
except ImportError as error:  # no dependency: the host program has chosen its build
    raise ImportError(
        "pullback_jax is for programs of JAX, which is not installed: python -m pip install jax"
    ) from error

from pullback_jax.bridge import to_jax

__all__ = ["to_jax"]
