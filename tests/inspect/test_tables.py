"""Tables in a notebook, and what prints as one there."""

from xml.etree import ElementTree

import numpy as np
import pytest

import pullback as pb
from pullback.inspect.tables import Column, Table


def looped(x):
    return np.sum(pb.fori_loop(0, 20, lambda _, u: u + 0.1 * np.sin(u), x))


X = np.ones(100)


def test_cells_are_escaped_and_stand_on_their_side():
    html = Table("a < b", (Column("of it|<i>", ("<script>",), text=True), Column("n", ("1",))), ("a & b",)).html()
    root = ElementTree.fromstring(html.replace("<br>", "<br/>"))
    assert root.find(".//td").text == "<script>"
    assert root.find(".//td").get("class") == "words"
    assert root.find(".//th").text == "of it\n<i>"
    assert (root.find(".//caption").text, root.find(".//small").text) == ("a < b", "a & b")


@pytest.mark.parametrize(
    "make",
    [
        lambda: pb.plan(looped, X, policy=pb.Binomial(3)),
        lambda: pb.plan(looped, X, budget="20 kB"),
        lambda: pb.saved(looped, X),
        lambda: pb.saved(looped, X).group("line"),
        lambda: pb.record(looped, X),
        lambda: pb.profile(looped, X, policies=[pb.Binomial(3)], repeat=1),
        lambda: pb.pareto(looped, X, budgets=["20 kB"]),
    ],
    ids=["plan", "advice", "saved", "groups", "graph", "profile", "pareto"],
)
def test_a_notebook_gets_a_small_page_of_its_own(make):
    html = make()._repr_html_()
    ElementTree.fromstring(html.replace("<br>", "<br/>").replace("&nbsp;", " "))
    assert len(html) < 12_000
    assert "http" not in html
    assert "currentColor" in html  # the colours of the page around it, light or dark
    assert "#" not in html.partition("<style>")[2].partition("</style>")[0]


def test_a_plan_draws_its_schedule():
    plan = pb.plan(looped, X, policy=pb.Binomial(3))
    assert str(plan.draw()) == str(pb.Binomial(3).schedule(20).draw())
    assert "Binomial(3): 20 steps" in plan.draw().svg

    def marked(x):
        for _ in pb.steps(12):
            x = np.sin(x)
        return np.sum(x)

    assert str(pb.plan(marked, X, policy=pb.Binomial(2)).draw()) == str(pb.Binomial(2).schedule(12).draw())
    advice = pb.plan(looped, X, budget="8 kB")
    assert "20 steps" in advice.draw().svg
    with pytest.raises(pb.PolicyError, match="knows of no loop that goes by a schedule"):
        pb.plan(lambda x: np.sum(np.sin(x)), X).draw()
