"""Where the boxes of a picture stand: the layered layout of grandalf, readers below what they read."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pullback.instruments.pictures.folded_graph import Arrow
from pullback.words.optional_libraries import optional_library

GAP: Final = 26.0
"""Pixels between boxes."""
ROUNDS: Final = 4
"""Rounds of ordering the boxes of a layer, so that few arrows cross."""
PURPOSE: Final = "graphs are laid out with grandalf"

Point = tuple[float, float]


@frozen
class Layout:
    """The middle of every box, the way of every arrow that is not carried, and how wide and high it all is."""

    places: dict[int, Point]
    ways: dict[tuple[int, int], list[Point]]
    width: float
    height: float


def laid_out(sizes: Mapping[int, Point], arrows: Sequence[Arrow]) -> Layout:
    """The :class:`Layout` of boxes of these widths and heights. Raises ``PullbackError`` where grandalf is missing."""
    graphs = optional_library("grandalf.graphs", PURPOSE, "plot")
    vertices = {key: graphs.Vertex(key) for key in sizes}
    edges = {
        (arrow.source, arrow.target): graphs.Edge(vertices[arrow.source], vertices[arrow.target])
        for arrow in arrows
        if not arrow.carried
    }
    places: dict[int, Point] = {}
    ways: dict[tuple[int, int], list[Point]] = {}
    left, height = 0.0, 0.0
    for component in graphs.Graph(list(vertices.values()), list(edges.values())).C:
        inside = _of_component(component, sizes)
        keys = [vertex.data for vertex in component.sV]
        shift = left - min(inside[key][0] - sizes[key][0] / 2 for key in keys)
        down = -min(inside[key][1] - sizes[key][1] / 2 for key in keys)
        for key in keys:
            x, y = inside[key]
            places[key] = x + shift, y + down
            height = max(height, y + down + sizes[key][1] / 2)
        for edge in component.sE:
            points = getattr(edge.view, "_pts", None) or [inside[edge.v[0].data], inside[edge.v[1].data]]
            ways[edge.v[0].data, edge.v[1].data] = [(x + shift, y + down) for x, y in points]
        bends = [x for edge in component.sE for x, _ in ways[edge.v[0].data, edge.v[1].data]]
        left = max([*(places[key][0] + sizes[key][0] / 2 for key in keys), *bends]) + GAP
    return Layout(*_to_the_right(places, ways, sizes), height)


def _of_component(component: Any, sizes: Mapping[int, Point]) -> dict[int, Point]:
    """The places of what hangs together, wherever they are."""
    layouts = optional_library("grandalf.layouts", PURPOSE, "plot")
    routing = optional_library("grandalf.routing", PURPOSE, "plot")
    for vertex in component.sV:
        vertex.view = layouts.VertexViewer(*sizes[vertex.data])
    if not component.sE:
        return {vertex.data: (0.0, 0.0) for vertex in component.sV}
    for edge in component.sE:
        edge.view = routing.EdgeViewer()
    layout = layouts.SugiyamaLayout(component)
    layout.xspace, layout.yspace = GAP, 1.6 * GAP
    layout.route_edge = routing.route_with_lines
    layout.init_all(inverted_edges=[])  # what is read was made before: there is no circle
    layout.draw(ROUNDS)
    return {vertex.data: (float(vertex.view.xy[0]), float(vertex.view.xy[1])) for vertex in component.sV}


def _to_the_right(
    places: dict[int, Point], ways: dict[tuple[int, int], list[Point]], sizes: Mapping[int, Point]
) -> tuple[dict[int, Point], dict[tuple[int, int], list[Point]], float]:
    """The layout moved to the right, so that nothing is left of the edge, and its width."""
    bends = [x for way in ways.values() for x, _ in way]
    least = min([0.0, *(x - sizes[key][0] / 2 for key, (x, _) in places.items()), *bends])
    most = max([0.0, *(x + sizes[key][0] / 2 for key, (x, _) in places.items()), *bends])
    return (
        {key: (x - least, y) for key, (x, y) in places.items()},
        {pair: [(x - least, y) for x, y in way] for pair, way in ways.items()},
        most - least,
    )
