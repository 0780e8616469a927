"""The report in a headless Chromium: it opens without a complaint, hover, sort and filter work, and it is readable at
1280 and at 420 pixels and in dark mode.

With ``PULLBACK_PICTURES=docs/pictures`` the picture of the wave demo's report is written there.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.instruments.reports.browser import browsing, chromium

import pullback as pb
from pullback.demos.wave import WaveMisfit, sized
from pullback.demos.wave_data import DEFAULT, make_survey
from pullback.instruments.reports.contents import contents_of
from pullback.instruments.reports.page import page_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="browser test not run: no Chromium in $CHROMIUM or on the path"),
]
LARGEST_PICTURE = 300_000
READABLE = """
[...document.querySelectorAll("p, li, td, th, h1, h2, .peak, code")].filter(e => e.offsetParent && e.textContent.trim())
    .every(e => parseFloat(getComputedStyle(e).fontSize) >= 12)
"""
CONTRAST = """
(() => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return Math.min(...["body", "#call", ".readout", "#saved td", "#answer li"].map(name => {
    const ink = light(getComputedStyle(document.querySelector(name)).color);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }));
})()
"""


def text(browser, selector):
    return browser.run(f"document.querySelector({selector!r}).textContent")


def column(browser, number):
    return browser.run(f"[...document.querySelectorAll('#saved tbody tr')].map(tr => tr.cells[{number}].textContent)")


def misfit(x):
    def body(k, u):
        return u + 0.1 * np.sin(u * x)

    return np.sum(np.exp(pb.fori_loop(0, 30, body, x)) * x)


@pytest.fixture(scope="module")
def browser():
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    found, _, error = contents_of(misfit, np.linspace(0, 1, 500), policies=(pb.SaveAll(), pb.Binomial(3)), repeat=1)
    assert error is None
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page_of(found.to_dict(), "1.2.3"), "utf-8")
    return path


@pytest.fixture(autouse=True)
def without_complaints(browser):
    browser.complaints.clear()
    browser.asked_for.clear()
    yield
    assert browser.complaints == []
    assert [url for url in browser.asked_for if not url.startswith(("file://", "data:"))] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_it_is_readable(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("[...document.querySelectorAll('section')].filter(s => !s.offsetHeight).length") == 0
    assert browser.run("[...document.querySelectorAll('.chart canvas')].length") == 2
    assert browser.run(READABLE)
    assert browser.run(CONTRAST) >= 4.5
    assert (browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") is not dark


def test_charts_follow_the_width_and_the_colours(browser, page):
    browser.open(page, 1280)
    pixel = "(() => { const c = document.querySelector('#curve canvas'); return c.width; })()"
    before = browser.run(pixel)
    browser.look(420, dark=True)
    browser.frames()
    assert browser.run(pixel) <= 420 < before


def test_hovering_tells_what_was_held_when(browser, page):
    browser.open(page, 1280)
    assert text(browser, "#timeline .readout") == "point at a moment"
    for place in (0.2, 0.3, 0.4, 0.5):  # on a busy machine the first step may come late
        browser.point("#timeline .u-over", place)
        early = text(browser, "#timeline .readout")
        if "saved" in early:
            break
    browser.point("#timeline .u-over", 0.97)
    late = text(browser, "#timeline .readout")
    assert "forward" in early
    assert "saved" in early
    assert "reverse" in late
    assert early != late
    browser.run("(() => { const s = document.querySelector('#timeline select'); s.value = 1; "
                "s.dispatchEvent(new Event('change')); })()")  # fmt: skip
    assert "Binomial" in browser.run("document.querySelector('#timeline select').selectedOptions[0].textContent")
    browser.point("#timeline .u-over", 0.5)
    assert "snapshot" in text(browser, "#timeline .readout")


def test_hovering_tells_the_policy_of_a_point(browser, page):
    browser.open(page, 1280)
    assert "one plain forward run takes" in text(browser, "#curve .readout")
    browser.point("#curve .u-over", 0.97)
    assert "SaveAll()" in text(browser, "#curve .readout")
    browser.point("#curve .u-over", 0.03)
    assert "Budget(" in text(browser, "#curve .readout")


def test_the_saved_values_are_sorted_and_filtered(browser, page):
    browser.open(page, 1280)
    sizes = column(browser, 0)
    assert sizes[0].endswith("KiB")
    browser.click("#saved th:nth-child(1) button")
    assert column(browser, 0) == sizes[::-1] or column(browser, 0)[-1] == sizes[0]
    browser.click("#saved th:nth-child(5) button")
    primitives = column(browser, 4)
    assert primitives == sorted(primitives)
    assert browser.run("document.querySelector('#saved th:nth-child(5)').ariaSort") == "ascending"
    browser.run("(() => { const i = document.querySelector('#saved input'); i.value = 'exp SAVED'; "
                "i.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert 0 < len(column(browser, 4)) < len(primitives)
    assert f"{len(column(browser, 4))} of {len(primitives)} rows" in text(browser, "#saved .count")


def test_a_line_of_the_source_filters_the_table(browser, page):
    browser.open(page, 420)
    browser.click("#source div.held .number")
    number = text(browser, "#source div.held .number")
    assert browser.run("document.querySelector('#saved input').value") == f"test_page_in_browser.py:{number}"
    assert column(browser, 4)


def test_the_schedule_is_shown(browser, page):
    browser.open(page, 1280)
    assert browser.run("document.querySelector('#schedule img').decode().then(() => "
                       "document.querySelector('#schedule img').naturalWidth)") > 100  # fmt: skip


def test_an_error_is_told(browser, page, tmp_path):
    path = tmp_path / "half.html"
    parts = dict.fromkeys(("profile", "curve", "timelines", "saved", "sources"))
    path.write_text(
        page_of({"name": "f", "call": "", "failed": "profile: ValueError: half", "answer": [], **parts}, "1")
    )
    browser.open(path, 420)
    assert "profile: ValueError: half" in text(browser, "#failed")
    assert browser.run("[...document.querySelectorAll('section')].filter(s => !s.hidden).length") == 0


def test_the_picture_of_the_wave_demo(browser, tmp_path):
    survey = make_survey(sized(DEFAULT, grid=(60, 120), n_steps=150))
    found, _, error = contents_of(WaveMisfit(survey.problem), survey.initial_velocity, repeat=5)
    assert error is None
    assert "wave_model.py" in found.answer[0]
    page = tmp_path / "wave.html"
    page.write_text(page_of(found.to_dict(), pb.__version__), "utf-8")
    browser.open(page, 1280)
    picture = browser.picture(1900)
    assert len(picture) < LARGEST_PICTURE
    folder = os.environ.get("PULLBACK_PICTURES")
    if folder:
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "wave-report.png").write_bytes(picture)
