"""The part of ``autograd.scipy`` that programs use most. Its modules import SciPy, an extra:
``pip install pullback-autograd[scipy]``."""
