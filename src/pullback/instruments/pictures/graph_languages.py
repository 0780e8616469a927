"""A picture of a graph in the languages of others: SVG, Mermaid and DOT."""

import math
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from pullback.instruments.pictures.folded_graph import NO_INFLUENCE, Box, Picture
from pullback.instruments.pictures.graph_layout import Layout, Point, laid_out
from pullback.words.errors import PullbackError

CHARACTER, LINE, PADDING, TOP = 7.5, 15.0, 9.0, 34.0
"""Pixels: of a character and a line of the text, around it in a box, and above the boxes for the title."""
TOO_MANY: Final = 600
"""Boxes that no layout makes readable."""
STYLE: Final = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #24292f } .title { font-weight: 600 }
.paper { fill: #ffffff } .box { fill: #eef3f8; stroke: #57606a } .input { fill: #e3f3e6 } .loop { fill: #fdf0d5 }
.folded { fill: #efe6f7 } .saves { stroke: #0b61c4; stroke-width: 2.4 } .output { stroke-dasharray: 6 2 }
.none { opacity: 0.45 } .way { fill: none; stroke: #57606a } .carried { stroke: #b4570a; stroke-dasharray: 5 3 }
.head { fill: #57606a } .influence { fill: #d1495b }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #14181d }
.box { fill: #202833; stroke: #9aa4af }
.input { fill: #1d3323 } .loop { fill: #3a2f16 } .folded { fill: #2e2440 } .saves { stroke: #6cb0ff }
.way { stroke: #9aa4af } .head { fill: #9aa4af } .carried { stroke: #f0a35e } }
"""


HEAD: Final = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
)


def svg_of(picture: Picture) -> str:
    """The picture as SVG. A blue border marks what saves something, a dashed one an output, a dashed arrow a value
    that goes to the next step; a red bar is as long as the cotangent is large, on a logarithmic scale.

    Raises ``PullbackError`` for more than 600 boxes, and where the layout library is missing.
    """
    if len(picture.boxes) > TOO_MANY:
        raise PullbackError(
            f"the picture of {picture.title} has {len(picture.boxes)} boxes, more than the {TOO_MANY} that can be laid "
            "out; fold it, draw(fold='auto') or draw(fold='functions'), or take its .dot for Graphviz"
        )
    sizes = {box.key: _size(box) for box in picture.boxes}
    layout = laid_out(sizes, picture.arrows)
    carried = [arrow for arrow in picture.arrows if arrow.carried]
    below = [*picture.steps, *picture.notes]
    # Arrows of what is carried go around on the right.
    width = max(layout.width + 18.0 * (1 + len(carried)), 8 * max(map(len, [picture.title, *below])), 200.0) + 20
    height = TOP + layout.height + 14 + LINE * (1 + len(below))
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(picture.title)}</title><style>{STYLE}</style>",
        HEAD,
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="title" x="10" y="20">{escape(picture.title)}</text>',
        f'<g transform="translate(10 {TOP:g})">',
        *_ways(picture, layout, sizes),
        *_boxes(picture, layout, sizes),
        "</g>",
        *(
            f'<text x="10" y="{TOP + layout.height + 14 + LINE * (k + 1):.0f}">{escape(text)}</text>'
            for k, text in enumerate(below)
        ),
        "</svg>",
    ])


def _size(box: Box) -> Point:
    texts = (box.title, *box.lines)
    return CHARACTER * max(map(len, texts)) + 2 * PADDING, LINE * len(texts) + 2 * PADDING


def _ways(picture: Picture, layout: Layout, sizes: dict[int, Point]) -> Iterator[str]:
    for (source, target), points in layout.ways.items():
        (x, y), (to_x, to_y) = layout.places[source], layout.places[target]
        ends = [(x, y + sizes[source][1] / 2), *points[1:-1], (to_x, to_y - sizes[target][1] / 2)]
        yield f'<path class="way" marker-end="url(#head)" d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in ends)}"/>'
    for k, arrow in enumerate(arrow for arrow in picture.arrows if arrow.carried):
        (x, y), (to_x, to_y) = layout.places[arrow.source], layout.places[arrow.target]
        out, into = x + sizes[arrow.source][0] / 2, to_x + sizes[arrow.target][0] / 2
        around = layout.width + 14 + 18 * k
        y, to_y = y + 4, to_y - 4
        yield (
            f'<path class="way carried" marker-end="url(#head)" '
            f'd="M{out:.1f} {y:.1f}H{around:.1f}V{to_y:.1f}H{into:.1f}"/>'
        )


def _boxes(picture: Picture, layout: Layout, sizes: dict[int, Point]) -> Iterator[str]:
    shares = influence_shares(picture)
    for box in picture.boxes:
        (x, y), (width, height) = layout.places[box.key], sizes[box.key]
        left, top, texts = x - width / 2, y - height / 2, (box.title, *box.lines)
        marks = " ".join(["box", box.kind, *(["saves"] * bool(box.saved_bytes)), *(["output"] * box.is_output)])
        faint = ' class="none"' if NO_INFLUENCE in box.lines else ""
        yield f"<g{faint}><title>{escape(', '.join(texts))}</title>"
        yield _rectangle(marks, left, top, width, height)
        if box.key in shares:
            yield _rectangle("influence", left + 2, top + height - 5, (width - 4) * shares[box.key], 3)
        for k, text in enumerate(texts):
            kind, down = ' class="title"' if not k else "", top + PADDING + LINE * (k + 1) - 4
            yield f'<text{kind} x="{left + PADDING:.1f}" y="{down:.1f}">{escape(text)}</text>'
        yield "</g>"


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"/>'


def influence_shares(picture: Picture) -> dict[int, float]:
    """How large the cotangent of each box that influences the output is among all, from 0.05 to 1 by its logarithm.
    Empty where no cotangents are known."""
    sizes = {box.key: math.log(box.adjoint) for box in picture.boxes if box.adjoint and math.isfinite(box.adjoint)}
    if not sizes:
        return {}
    low, high = min(sizes.values()), max(sizes.values())
    return {key: 0.05 + 0.95 * (size - low) / ((high - low) or 1.0) for key, size in sizes.items()}


def mermaid_of(picture: Picture) -> str:
    """The picture in Mermaid's language, as GitHub and notebooks draw it."""
    shapes = {"input": '(["{}"])', "operation": '["{}"]', "loop": '[["{}"]]', "folded": '("{}")'}
    lines = ["flowchart TB", *(f"  %% {text}" for text in (picture.title, *picture.notes))]
    for group in (None, *range(len(picture.steps))):
        inside = [box for box in picture.boxes if box.step == group]
        if group is not None:
            lines.append(f'  subgraph steps{group}["{_of_mermaid(picture.steps[group])}"]')
        for box in inside:
            text = "<br>".join(map(_of_mermaid, (box.title, *box.lines)))
            lines.append(f"    n{box.key}{shapes[box.kind].format(text)}")
        lines += [] if group is None else ["  end"]
    lines += [f"  n{a.source} {'-.->' if a.carried else '-->'} n{a.target}" for a in picture.arrows]
    lines += [f"  style n{box.key} stroke-width:3px" for box in picture.boxes if box.saved_bytes]
    return "\n".join(lines)


def dot_of(picture: Picture) -> str:
    """The picture in Graphviz' language."""
    shapes = {"input": "ellipse", "operation": "box", "loop": "box3d", "folded": "component"}
    lines = [f'digraph "{_of_dot(picture.title)}" {{', "  rankdir=TB;"]
    for group in (None, *range(len(picture.steps))):
        if group is not None:
            lines.append(f'  subgraph cluster{group} {{ label="{_of_dot(picture.steps[group])}";')
        for box in (box for box in picture.boxes if box.step == group):
            text = "\\n".join(map(_of_dot, (box.title, *box.lines)))
            more = ", peripheries=2" if box.is_output else ""
            more += ", penwidth=2.4" if box.saved_bytes else ""
            lines.append(f'  n{box.key} [label="{text}", shape={shapes[box.kind]}{more}];')
        lines += [] if group is None else ["  }"]
    lines += [
        f"  n{a.source} -> n{a.target}{' [style=dashed, constraint=false]' if a.carried else ''};"
        for a in picture.arrows
    ]
    return "\n".join([*lines, *(f"  // {text}" for text in picture.notes), "}"])


def _of_mermaid(text: str) -> str:
    """Mermaid reads quotes and brackets of a label as its own."""
    return (
        text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;").replace("%", "#37;")
    )


def _of_dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
