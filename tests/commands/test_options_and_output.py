"""What a terminal gets: tables that fit, a bar."""

import io
import re
import sys

import pytest
from rich.console import Console

from pullback.commands import options_and_output
from pullback.instruments.inspect.tables import Column, Table


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


POLICY = Column("policy", ("SaveAll()",), text=True)
TABLE = Table(
    "a title",
    (POLICY, Column("snapshots", ("0",)), Column("forward|steps", ("12",)), Column("same|bits", ("yes",))),
    ("a note",),
)


@pytest.mark.parametrize(
    ("width", "said"), [(60, "policy snapshots steps bits"), (30, "forward steps 12"), (10, "----")]
)
def test_a_terminal_gets_the_table_that_fits(monkeypatch, width, said):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    options_and_output.show(TABLE)
    printed = screen.getvalue()
    assert "a note" in printed
    assert said in " ".join(re.sub(r"\x1b\[[0-9;]*m", "", printed).split())


def test_a_terminal_gets_a_bar(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with options_and_output.progress_bar(quiet=False) as tell:
        tell("the first part", 0, 2)
        tell("the second part", 1, 2)
    assert "the second part" in screen.getvalue()


def test_quiet_shows_nothing():
    with options_and_output.progress_bar(quiet=True) as tell:
        assert tell is None


def test_the_answer_to_same_bits_stands_out():
    table = Table("t", (Column("same|bits", ("yes", "NO")),))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system="standard", width=80)
    console.print(options_and_output.rich_table(table))
    assert "\x1b[32myes" in screen.getvalue().replace(" ", "")
    assert "\x1b[1;31mNO" in screen.getvalue().replace(" ", "")
