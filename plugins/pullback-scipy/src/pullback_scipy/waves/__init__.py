"""What ``pullback_scipy.fft``, ``ndimage`` and ``signal`` consist of: linear maps of samples, and their transposes."""
