"""``python -m pullback``: the same as the command ``pullback``."""

from pullback.cli import main

if __name__ == "__main__":
    main()
