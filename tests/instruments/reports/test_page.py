"""The report without a browser: what is in it, that it asks the network for nothing, and what an error leaves."""

import hashlib
import json
import re

import numpy as np
import pytest

import pullback as pb
from pullback.instruments.reports import contents as contents_module
from pullback.instruments.reports.contents import contents_of
from pullback.instruments.reports.page import ROOM, page_of, require_writable
from pullback.instruments.reports.sources import source_lines
from pullback.memory.ledger import REASONS
from pullback.words.errors import InputFileError

N = 12
POLICIES = (pb.SaveAll(), pb.Binomial(3))


def misfit(x, n=N):
    for _ in pb.steps(int(n)):
        x = x + 0.1 * np.sin(x)  # the line that holds all
    return np.sum(x)


@pytest.fixture(scope="module")
def found():
    found, profile, error = contents_of(misfit, np.ones(100), policies=POLICIES, repeat=1)
    assert error is None
    return found, profile


def data_of(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    return json.loads(text)


def test_every_part_is_there_and_agrees_with_the_profile(found):
    data, profile = found[0].to_dict(), found[1]
    assert [row["policy"] for row in data["profile"]["rows"]] == [repr(policy) for policy in POLICIES]
    for line, row in zip(data["timelines"], profile.rows, strict=True):
        total = np.sum(list(line["held"].values()), axis=0)
        assert max(total) == row.peak_bytes == row.predicted_bytes
        assert len(line["seconds"]) == len(line["phase"]) == len(line["step"]) == len(total)
    assert data["timelines"][1]["picture"].startswith("<svg")
    assert data["timelines"][0]["picture"].startswith("Every step is recorded")
    assert sum(row["nbytes"] for row in data["saved"]["rows"]) == data["saved"]["total_bytes"]
    assert all(point["policy"].startswith("Budget(") for point in data["curve"])


def test_it_answers_which_line_and_at_what_cost(found):
    who, cost, *_ = found[0].answer
    line = misfit.__code__.co_firstlineno + 2
    assert re.fullmatch(
        rf"test_page.py:{line} holds 8.59 KiB, 92% of the 9.38 KiB that are saved under SaveAll\(\)\.", who
    )
    assert re.fullmatch(r"Binomial\(3\) holds .* in the place of .*, and takes .* times as long as SaveAll\(\)\.", cost)


def test_the_source_bears_the_bytes_of_its_lines(found):
    (source,) = found[0].parts["sources"]
    held = {number: (text.strip(), nbytes) for number, text, nbytes, _ in source["lines"] if nbytes}
    assert list(held.values()) == [("x = x + 0.1 * np.sin(x)  # the line that holds all", 9600)]


def test_of_a_long_file_the_surroundings_are_shown(tmp_path):
    path = tmp_path / "long.py"
    path.write_text(
        "\n".join(["# filler"] * 400 + ["def f(np, x):", "    return np.sum(np.sin(x))"] + ["# filler"] * 400)
    )
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)  # noqa: S102  written above
    (source,) = source_lines(pb.saved(lambda x: names["f"](np, x), np.ones(3)))
    assert (source["name"], source["shown"], len(source["lines"])) == ("long.py", "long.py", 25)
    assert source["lines"][12] == (402, "    return np.sum(np.sin(x))", 24, 1)


def test_every_reason_has_a_colour_of_its_own():
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", ROOM.joinpath("page.css").read_text().split("@media")[0]))
    told = [colours[reason] for reason in REASONS]
    assert len(set(told)) == len(REASONS)


def test_many_saved_rows_are_folded(monkeypatch):
    monkeypatch.setattr(contents_module, "MOST_ROWS", 3)
    table = pb.saved(misfit, np.ones(100))
    folded = contents_module._saved(table, "SaveAll()")
    assert folded["n_rows"] == len(table) == N
    assert sorted((row["nbytes"], row["buffers"]) for row in folded["rows"]) == [(800, 1), (8800, 11)]
    assert sum(row["nbytes"] for row in folded["rows"]) == table.total_bytes


def test_the_page_holds_everything_and_names_no_address(found):
    page = page_of(found[0].to_dict(), "1.2.3")
    assert data_of(page) == json.loads(json.dumps(found[0].to_dict()))
    before, _, rest = page.partition('<script type="application/json" id="data">')
    shell = before + rest.partition("</script>")[2]  # without the data, in which this file stands
    assert "@@" not in shell
    assert not re.search(r"(src|href)=[\"'](?!data:)", shell)
    assert "https://" not in shell.replace("https://github.com/leeoniya/uPlot", "")
    assert len(page) < 200_000


def test_the_charting_library_is_the_one_that_npm_has():
    digest = hashlib.sha256(ROOM.joinpath("uplot/uPlot.iife.min.js").read_bytes()).hexdigest()
    assert digest == "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"  # uplot-1.6.32.tgz
    assert "MIT License" in ROOM.joinpath("uplot/LICENSE").read_text()


def test_texts_of_the_users_cannot_end_the_script(found):
    data = found[0].to_dict() | {"name": "</script><script>alert(1)</script><!--", "call": "@@DATA@@"}
    page = page_of(data, "1.2.3")
    assert data_of(page)["name"] == data["name"]
    assert page.count("</script>") == page_of(found[0].to_dict(), "1.2.3").count("</script>")
    assert "<title>&lt;/script&gt;" in page


def test_after_an_error_it_shows_what_came_before(monkeypatch):
    def stops(*args, **kwargs):
        raise RuntimeError("half way")

    monkeypatch.setattr(contents_module, "_timeline", stops)
    found, profile, error = contents_of(misfit, np.ones(10), 3, policies=POLICIES, repeat=1)
    assert profile is not None
    assert isinstance(error, RuntimeError)
    data = data_of(page_of(found.to_dict(), "1.2.3"))
    assert data["failed"].startswith(f"timeline under {POLICIES[0]!r}: RuntimeError: half way; timeline under ")
    assert data["profile"] is not None
    assert data["timelines"] == []
    assert data["saved"]["total_bytes"] > 0  # the other parts are there


def test_a_policy_that_fails_costs_its_part_alone():
    policies = (pb.SaveAll(), pb.Budget(1), pb.Binomial(3))
    found, profile, error = contents_of(misfit, np.ones(10), 20, policies=policies, repeat=1, lines=1)
    assert (error, found.failed) == (None, "")
    assert [row["policy"] for row in found.parts["profile"]["rows"][:2]] == ["SaveAll()", "Binomial(3)"]
    assert any(note.startswith("not profiled: Budget(1): BudgetError") for note in found.parts["profile"]["notes"])
    assert [line["policy"] for line in found.parts["timelines"]] == ["SaveAll()", "Binomial(3)"]
    assert profile.rows[-1].without_line == f"test_page.py:{misfit.__code__.co_firstlineno + 2}"
    assert f"what {profile.rows[-1].without_line} makes" in found.answer[-1].lower()


def test_a_function_that_fails_half_way_shows_what_was_held_until_then():
    def fails(c):
        for k in pb.steps(30):
            c = np.sin(c) if k < 20 else 1 / 0
        return c

    found, profile, error = contents_of(fails, np.ones(100), policies=(pb.Recompute(),), repeat=1)
    assert (profile, type(error)) == (None, ZeroDivisionError)
    assert found.failed == "profile: ZeroDivisionError: division by zero"
    (line,) = found.parts["timelines"]
    assert max(line["held"]["snapshot"]) >= 800
    assert max(step for step in line["step"] if step is not None) >= 18
    assert found.parts["saved"]["total_bytes"] >= 800
    (source,) = found.parts["sources"]
    held = {number: nbytes for number, _, nbytes, _ in source["lines"] if nbytes}
    assert held[fails.__code__.co_firstlineno + 2] >= 800


def test_an_unwritable_path_is_refused_and_a_file_that_is_there_stays(tmp_path):
    with pytest.raises(InputFileError, match=r"nowhere/report.html cannot be written: .*; name a file in a folder"):
        require_writable(tmp_path / "nowhere" / "report.html")
    there, new = tmp_path / "there.html", tmp_path / "new.html"
    there.write_text("before")
    require_writable(there)
    require_writable(new)
    assert there.read_text() == "before"
    assert not new.exists()
