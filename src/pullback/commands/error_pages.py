"""The pages on errors that ``pullback explain`` prints: beside the package in a wheel, in docs/ in a checkout."""

from pathlib import Path

from pullback.words import errors

_PACKAGE = Path(errors.__file__).parents[1]
PLACES = (_PACKAGE / "error_pages", _PACKAGE.parents[1] / "docs" / "errors")
"""The folders with the pages: that of an installation (see force-include in pyproject.toml), and that of the
sources."""


def codes() -> dict[str, str]:
    """The code of every error and warning by the name of its class."""
    found = {name: getattr(cls, "code", "") for name, cls in vars(errors).items() if isinstance(cls, type)}
    return {name: code for name, code in found.items() if code}


def page_on(word: str | None) -> str | None:
    """The page on a code or a class, in any case of letters; the list of all for None; None for a word that names no
    error."""
    if word is None:
        return _read("index")
    key = word.strip().lower().removeprefix("pullback.").removeprefix("errors.")
    code = next((code for name, code in codes().items() if key in {name.lower(), code.lower()}), None)
    return None if code is None else _read(code)


def _read(name: str) -> str:
    folder = next((place for place in PLACES if (place / "index.md").is_file()), PLACES[-1])
    return (folder / f"{name}.md").read_text("utf-8")
