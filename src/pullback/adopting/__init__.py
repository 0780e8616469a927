"""Programs that other people wrote, run as they are: a second copy whose arrays can hold traced values."""
