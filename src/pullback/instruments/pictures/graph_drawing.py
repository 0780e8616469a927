"""``graph.draw()``: the picture of a graph as text, SVG, Mermaid and DOT."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from attrs import define

from pullback.instruments.pictures.folded_graph import NO_INFLUENCE, SIZE, Picture, folded, steps_of, steps_text
from pullback.instruments.pictures.graph_languages import dot_of, mermaid_of, svg_of
from pullback.scheduling.machine.picture import written
from pullback.words.errors import InputFileError, PullbackError

SUFFIXES: Final = (".svg", ".mmd", ".dot", ".txt")


@define(repr=False, slots=False, eq=False)
class GraphDrawing:
    """A graph drawn: ``text`` for a terminal, ``svg`` (which needs the extra ``plot``), ``mermaid`` and ``dot``. A
    notebook shows the SVG."""

    picture: Picture
    text: str

    @cached_property
    def svg(self) -> str:
        """The picture as SVG. Raises ``PullbackError`` where the layout library is missing."""
        return svg_of(self.picture)

    @property
    def mermaid(self) -> str:
        """The picture in Mermaid's language."""
        return mermaid_of(self.picture)

    @property
    def dot(self) -> str:
        """The picture in Graphviz' language."""
        return dot_of(self.picture)

    def save(self, path: str | Path) -> Path:
        """The path, written in the form that its suffix says: ``.svg``, ``.mmd`` (Mermaid), ``.dot`` or ``.txt``.

        Raises :class:`InputFileError` for another suffix, and where it cannot be written.
        """
        target = Path(path)
        forms: dict[str, Callable[[], str]] = {
            ".svg": lambda: self.svg, ".mmd": lambda: self.mermaid, ".dot": lambda: self.dot, ".txt": lambda: self.text,
        }  # fmt: skip
        if target.suffix not in forms:
            raise InputFileError(
                f"the form of {target} is not known; name a file that ends in one of {', '.join(SUFFIXES)}"
            )
        return written(target, forms[target.suffix]())

    def _repr_svg_(self) -> str | None:
        try:
            return self.svg
        except PullbackError:  # no layout library: the text is shown
            return None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def draw_graph(graph: Any, fold: str, adjoints: Any) -> GraphDrawing:
    """The :class:`GraphDrawing` of a graph, of whose values ``adjoints`` are the norms of the cotangents, or None."""
    picture = folded(graph, fold, adjoints)
    return GraphDrawing(picture, _text(graph, picture, adjoints))


def _text(graph: Any, picture: Picture, adjoints: Any) -> str:
    """The listing, with the cuts between the steps of a Python loop; of a folded graph a line for each box."""
    if not picture.is_folded:
        lines = graph.listing(None).split("\n")
        if adjoints is not None:
            lines[1:-1] = _beside(lines[1:-1], [NO_INFLUENCE if x is None else f"{SIZE}{x:.3g}" for x in adjoints])
        live = graph.live_bytes()
        for stretch in reversed(steps_of(graph)):
            for step in range(stretch.n_steps - 1, 0, -1):
                at = stretch.start + step * stretch.period
                lines.insert(1 + at, f"--- cut before step {step}: {live[at - 1]:,} B live ---")
        for text, body in zip(picture.steps, picture.bodies, strict=True):
            listed = body.graph.listing(None).split("\n")[1:-1]
            if adjoints is not None:
                listed = _beside(listed, [steps_text(sizes, body.steps) for sizes in body.by_step])
            lines += [f"--- {text} ---", *listed]
        return "\n".join([*lines, *picture.notes])
    reads: dict[int, list[str]] = {}
    for arrow in picture.arrows:
        reads.setdefault(arrow.target, []).append(f"#{arrow.source}{' of the step before' if arrow.carried else ''}")
    rows = [picture.title]
    for box in picture.boxes:
        if box.step is not None and (not box.key or picture.boxes[box.key - 1].step != box.step):
            rows.append(f"--- {picture.steps[box.step]} ---")
        rows.append(f"#{box.key} {box.title}({', '.join(reads.get(box.key, ()))})  {'  '.join(box.lines)}")
    return "\n".join([*rows, *picture.notes])


def _beside(lines: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The texts in a column behind the lines."""
    width = max(map(len, lines), default=0)
    return [f"{line.ljust(width)}  {text}" for line, text in zip(lines, texts, strict=True)]
