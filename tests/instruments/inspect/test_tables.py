"""Tables in a notebook, and what prints as one there."""

from html.parser import HTMLParser

import numpy as np
import pytest

import pullback as pb
from pullback.instruments.inspect.tables import Column, Table


def looped(x):
    return np.sum(pb.fori_loop(0, 20, lambda _, u: u + 0.1 * np.sin(u), x))


X = np.ones(100)


class Read(HTMLParser):
    """The texts of a piece of a page, by their element; every element that is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append((tag, dict(attrs).get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.texts.append((*self.open[-1], data))


def test_cells_are_escaped_and_stand_on_their_side():
    html = Table("a < b", (Column("of it|<i>", ("<script>",), text=True), Column("n", ("1",))), ("a & b",)).html()
    assert Read(html).texts[1:] == [
        ("caption", "", "a < b"), ("th", "words", "of it\n<i>"), ("th", "", "n"), ("td", "words", "<script>"),
        ("td", "", "1"), ("small", "", "a & b"),
    ]  # fmt: skip


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
    assert Read(html).texts
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
