"""Functions of pullback within programs of PyTorch: :func:`to_torch`."""

try:
    import torch  # noqa: F401 - tried, for the message
except ImportError as error:  # no dependency: the host program has chosen its build
    raise ImportError(
        "pullback_torch is for programs of PyTorch, which is not installed: python -m pip install torch"
    ) from error

from pullback_torch.bridge import to_torch

__all__ = ["to_torch"]
