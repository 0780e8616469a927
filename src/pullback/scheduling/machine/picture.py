"""A schedule as a picture: steps across, work downwards, as the papers on checkpointing draw it."""

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from attrs import frozen

from pullback.scheduling.machine.actions import MEMORY, Action, Advance, Delete, Load, Record, Reverse, Save, Transfer
from pullback.words.errors import InputFileError

WIDTH, HEIGHT, LEFT, TOP, BELOW = 860.0, 520.0, 90.0, 64.0, 34.0
"""The field that is drawn in and the room left of it, above it and below it, in pixels."""
COLOURS = {
    "advanced": "#3b82c4",
    "recorded": "#2e9e6b",
    "reversed": "#d1495b",
    "state held": "#8a8f98",
    "state on disk held": "#c78f2c",
    "tape held": "#9a6fb0",
}
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f } path { fill: none; stroke-width: 1.6 }
.paper { fill: #ffffff } .axis { stroke: #24292f; stroke-width: 1 } .held { stroke-width: 1.2; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #14181d } .axis { stroke: #e6edf3 } }
"""


@frozen(repr=False)
class Drawing:
    """What :func:`draw` made of a schedule: ``text`` for a terminal, ``svg`` for a page; a notebook shows the
    picture.

    Attributes
    ----------
    text, svg
        The same picture, as lines of text and as SVG.

    Example
    -------
    >>> import pullback as pb
    >>> pb.schedules.draw(pb.SaveAll().schedule(3), 3).svg[:4]
    '<svg'
    """

    text: str
    svg: str

    def save(self, path: str | Path) -> Path:
        """The path of the picture, written as SVG. Raises :class:`InputFileError` where it cannot be written."""
        return written(Path(path), self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


class Lines:
    """The lines of a picture, gathered action by action. The work that was done so far is its ``time``: a step that is
    advanced, recorded or reversed takes 1."""

    def __init__(self) -> None:
        self.time = 0
        self.lines: dict[str, list[list[int]]] = {kind: [] for kind in COLOURS}
        self.since: dict[tuple[str, int, str], int] = {}

    def add(self, action: Action) -> None:
        match action:
            case Advance(start, stop):
                self.move("advanced", start, stop)
            case Record(step):
                self.move("recorded", step, step + 1)
            case Reverse(step):
                self.move("reversed", step + 1, step)
            case Save(kind, step, tier):
                self.since[kind, step, tier] = self.time
            case Transfer(kind, step, _, target):
                self.since[kind, step, target] = self.time
            case Delete(kind, step, tier):
                self.end(kind, step, tier)
            case Load() | _:  # where the live state goes back to is seen by what begins there
                pass

    def move(self, kind: str, start: int, stop: int) -> None:
        """A stretch of steps; one line with the last one where it goes on in the same direction."""
        lines, before = self.lines[kind], self.time
        self.time += abs(stop - start)
        if lines and lines[-1][2:] == [start, before]:
            lines[-1][2:] = [stop, self.time]
        else:
            lines.append([start, before, stop, self.time])

    def end(self, kind: str, step: int, tier: str) -> None:
        begun = self.since.pop((kind, step, tier))
        name = "tape held" if kind == "tape" else "state held" if tier == MEMORY else "state on disk held"
        self.lines[name].append([step, begun, step, self.time])

    def svg(self, title: str, n: int) -> str:
        """The picture of all that was gathered, of a loop of ``n`` steps."""
        across, down = WIDTH / max(n, 1), HEIGHT / max(self.time, 1)
        drawn = [
            f'<path class="{kind.split()[-1]}" stroke="{COLOURS[kind]}" d="{_path(lines, across, down)}"/>'
            for kind, lines in sorted(self.lines.items(), key=lambda pair: "held" not in pair[0])
            if lines
        ]
        right, bottom = LEFT + WIDTH, TOP + HEIGHT
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 30:g} {bottom + BELOW:g}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            f'<text x="{LEFT:g}" y="22">{escape(title)}</text>',
            *self.legend(),
            f'<path class="axis" d="M{LEFT:g} {bottom:g}V{TOP:g}H{right:g}"/>',
            *drawn,
            f'<text x="{LEFT:g}" y="{bottom + 22:g}">step 0</text>',
            f'<text x="{right:g}" y="{bottom + 22:g}" text-anchor="end">step {n}</text>',
            f'<text x="{LEFT - 8:g}" y="{TOP + 12:g}" text-anchor="end">work 0</text>',
            f'<text x="{LEFT - 8:g}" y="{bottom:g}" text-anchor="end">{self.time}</text>',
            "</svg>",
        ])

    def legend(self) -> Iterable[str]:
        x = LEFT
        for kind, lines in self.lines.items():
            if lines:
                yield f'<path stroke="{COLOURS[kind]}" stroke-width="4" d="M{x:g} 42h18"/>'
                yield f'<text x="{x + 24:g}" y="46">{kind}</text>'
                x += 40 + 7 * len(kind)


def _path(lines: list[list[int]], across: float, down: float) -> str:
    """The lines in tenths of a pixel; those that fall on one another once."""
    ends = (
        f"M{LEFT + x0 * across:.1f} {TOP + y0 * down:.1f}L{LEFT + x1 * across:.1f} {TOP + y1 * down:.1f}"
        for x0, y0, x1, y1 in lines
    )
    return "".join(dict.fromkeys(ends))


def written(target: Path, text: str) -> Path:
    """A file that a picture has been written to; raises :class:`InputFileError` where that cannot be."""
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise InputFileError(
            f"the picture cannot be written to {target}: {error.strerror}; name a file in a folder that exists"
        ) from error
    return target
