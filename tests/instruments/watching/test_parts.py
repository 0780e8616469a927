"""A bar for work of several parts."""

import io

from rich.console import Console

import pullback as pb
from pullback.instruments.watching.parts import bar_on, silent, telling


def test_a_bar_names_the_part_that_begins():
    drawn = io.StringIO()
    with bar_on(Console(file=drawn, force_terminal=True, width=80)) as tell:
        tell("SaveAll(): plan", 3, 12)
    assert "3/12" in drawn.getvalue()
    assert "SaveAll(): plan" in drawn.getvalue()


def test_who_is_told(capfd):
    for progress in (None, False, True):  # no terminal is here
        with telling(progress) as tell:
            tell("part", 0, 1)
            assert tell is silent
    with telling(print) as tell:
        assert tell is print
    pb.profile(lambda x: x * x, 2.0, policies=pb.SaveAll(), repeat=1, progress=True)
    assert capfd.readouterr() == ("", "")
