"""Reports in a real browser: nothing is loaded, nothing is complained about, everything is there."""

import json
import re
from dataclasses import replace

import pytest

from browsing import chromium, needs_chromium
from helpers import XL330, needs_xl330
from reporting import assessed, file_of, logs_of, provenance_of, stated_of
from stribeck.cli.main import main
from stribeck.evaluate.judgement import judge
from stribeck.files.actuators import load_actuator
from stribeck.model.log import Series
from stribeck.report.document import render

ATTACK = "</style></title><script>document.title='broken in'</script><img src=x onerror=\"document.title='broken in'\">"
ZOOM = "document.querySelector('figure.zoom .plot')"
VIEWS = "[...document.querySelector('figure.zoom').querySelectorAll('.window')].map(w => w.getAttribute('viewBox'))"
WHOLE = ["0 0 10000 10000"] * 2
OVERFLOWING = """
[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && !e.closest('svg')
  && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.tagName + ' ' + e.className)
"""


@pytest.fixture(scope="module")
def logs():
    return logs_of("m3")


@pytest.fixture(scope="module")
def content(logs):
    """Three laws on 16 runs, of which six were held out; one law's file has values alone."""
    files = {law: file_of(law, provenance_of(logs[:10], logs[10:])) for law in ("m1", "m3")}
    return written({**files, "m6": file_of("m6", None)}, logs)


def written(files, logs):
    assessment = assessed(files, logs)
    return render(assessment, judge(assessment), {"stribeck": "0.1.0"})


@pytest.fixture
def address(content, tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(content)
    return path.as_uri()


@pytest.fixture(scope="module")
def page():
    with chromium() as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(request):
    if "page" in request.fixturenames:
        found = request.getfixturevalue("page")
        found.requests.clear()
        found.complaints.clear()


def box_of(page):
    """Left, top, width and height of the first motion figure, scrolled into sight."""
    page.run("document.querySelector('figure.zoom').scrollIntoView({behavior: 'instant'})")
    return page.run(f"(b => [b.left, b.top, b.width, b.height])({ZOOM}.getBoundingClientRect())")


def assert_alone(page, address):
    """Nothing was requested but the page, and the console is empty."""
    assert set(page.requests) == {address}
    assert page.complaints == []


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_a_report_opens_alone_and_fits_the_screen(page, address, tmp_path, width, scheme):
    """Every figure has lines and a size, nothing is wider than the screen, dark is dark."""
    page.resize(width, phone=width < 600)
    page.prefer(scheme)
    page.open(address)
    assert_alone(page, address)
    figures = page.run(
        "[...document.querySelectorAll('figure')].map(f => [f.querySelector('h3').textContent,"
        " f.querySelectorAll('path, circle').length, f.querySelector('svg').getBoundingClientRect().height])"
    )
    assert len(figures) == 16 + 1 + 5 + 3 + 3 + 1
    assert all(title and marks >= 2 and height > 100 for title, marks, height in figures), figures
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(OVERFLOWING) == []
    smallest = page.run(
        "Math.min(...[...document.querySelectorAll('.ticks text')].map(t => t.getBoundingClientRect().height))"
    )
    assert smallest >= 11, "tick labels are too small to read"
    background = page.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 150) == (scheme == "dark")
    assert len(page.screenshot(tmp_path / "page.png")) > 50_000


@needs_chromium
def test_motion_is_zoomed_by_wheel_drag_and_keys(page, address):
    """The wheel where the figure has the focus, a drag over a stretch, + and 0; ticks follow."""
    page.resize(1400)
    page.open(address)
    cancelled = f"!{ZOOM}.dispatchEvent(new WheelEvent('wheel', {{deltaY: -300, cancelable: true}}))"
    assert page.run(cancelled) is False
    assert page.run(VIEWS) == WHOLE
    ticks = page.run("document.querySelector('.ticks.x').childElementCount")
    left, top, width, height = box_of(page)
    x, y = left + width / 2, top + height / 3
    page.mouse("mousePressed", x - 60, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x + 40, y, button="left", buttons=1)
    page.mouse("mouseReleased", x + 40, y, button="left", clickCount=1)
    upper, lower = page.run(VIEWS)
    assert upper.split()[::2] == lower.split()[::2]
    share = float(upper.split()[2]) / 10000
    assert share == pytest.approx(100 / (width * 400 / 460), rel=0.02)
    assert page.run("document.querySelector('.ticks.x').childElementCount") >= min(ticks, 3)
    page.key("0")
    assert page.run(VIEWS) == WHOLE
    assert page.run(cancelled) is True
    assert float(page.run(VIEWS)[0].split()[2]) < 5000
    page.run("document.querySelector('figure.zoom .tools button:last-of-type').click()")
    page.key("+")
    page.key("ArrowRight")
    assert [float(part) for part in page.run(VIEWS)[0].split()[::2]] == pytest.approx([3500.0, 5000.0])
    page.mouse("mouseMoved", x, y)
    assert re.match(
        r"\d\.\d+ s: goal .*measured .*m3 .* rad", page.run("document.querySelector('.readout').textContent")
    )
    assert_alone(page, address)


@needs_chromium
def test_two_fingers_zoom_and_one_moves(page, address):
    """On a phone."""
    page.resize(400, phone=True)
    page.open(address)
    left, top, width, height = box_of(page)
    x, y = left + width / 2, top + height / 3
    page.touch("touchStart", (x - 30, y), (x + 30, y))
    page.touch("touchMove", (x - 60, y), (x + 60, y))
    page.touch("touchMove", (x - 90, y), (x + 90, y))
    page.touch("touchEnd")
    start, zoomed = (float(part) for part in page.run(VIEWS)[0].split()[::2])
    assert zoomed == pytest.approx(10000 / 3, rel=0.05)
    page.touch("touchStart", (x, y))
    page.touch("touchMove", (x - 30, y))
    page.touch("touchMove", (x - 80, y))
    page.touch("touchEnd")
    moved, same = (float(part) for part in page.run(VIEWS)[0].split()[::2])
    assert moved > start + 100
    assert same == pytest.approx(zoomed)


@needs_chromium
def test_a_law_can_be_hidden_everywhere(page, address):
    """By its box in the legend, also without scripts; its table of parameters goes with it."""
    page.open(address)
    shown = "[...document.querySelectorAll('.law-2')].filter(e => !e.closest('label') && getComputedStyle(e).display != 'none').length"
    assert page.run(shown) > 30
    page.run("document.getElementById('show-2').click()")
    assert page.run(shown) == 0
    assert page.run("getComputedStyle(document.querySelector('label.law-2 svg')).display") != "none"


@pytest.mark.slow
@needs_chromium
def test_a_report_without_scripts_shows_the_same_lines_and_prints(page, address):
    """Lines and ticks are in the page; on paper it is light, and folded parts are there."""
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(address)
        pdf = page.pdf()
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") >= 5
    page.open(address)
    page.prefer("dark", media="print")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
    page.prefer("light")
    static = page.run("document.querySelectorAll('.ticks text').length")
    page.run("document.querySelectorAll('figure.zoom .tools button:last-of-type').forEach(b => b.click())")
    assert page.run("document.querySelectorAll('.ticks text').length") == static


@needs_chromium
def test_names_from_files_stay_text(page, logs, tmp_path):
    """Markup in names of runs, files, reasons and versions is shown, not obeyed."""
    attacked = [replace(log, name=f"{k} {ATTACK}", trajectory=ATTACK) for k, log in enumerate(logs[:2])]
    told = provenance_of(attacked, versions={ATTACK: ATTACK})
    stated = stated_of("m1")
    stated["kt"] = stated["kt"].undetermined(ATTACK)
    content = file_of("m1", told, stated=stated, statements=(ATTACK,))
    path = tmp_path / "attacked.html"
    path.write_bytes(written({ATTACK: content}, attacked))
    page.open(path.as_uri())
    assert_alone(page, path.as_uri())
    assert page.run("document.title") == "Friction of Dynamixel MX-106"
    assert page.run("document.querySelectorAll('script, img').length") == 1
    assert page.run("document.querySelector('figure.zoom h3').textContent") == f"0 {ATTACK}"


@needs_chromium
def test_one_short_run_with_a_gap_and_a_file_of_values(page, logs, tmp_path):
    """The least there can be."""
    log = logs[0]
    kept = (log.position.time < 1.0) | ((log.position.time > 1.5) & (log.position.time < 2.0))
    cut = replace(
        log, position=Series(log.position.time[kept], log.position.value[kept], held=False), temperature=None
    )
    path = tmp_path / "one.html"
    path.write_bytes(written({"m1": file_of("m1", None)}, [cut]))
    page.resize(400, phone=True)
    page.open(path.as_uri())
    assert_alone(page, path.as_uri())
    text = page.run("document.body.innerText")
    for part in (
        "regard none of them as determined",
        "No recording contains the temperature",
        "Not in this file",
        "There is only one file",
    ):
        assert part in text
    measured = page.run("document.querySelector('figure.zoom .trace.measured').getAttribute('d')")
    assert measured.count("M") == 2


@needs_chromium
def test_many_runs_stay_a_page_of_sane_size(page, logs, tmp_path):
    """96 runs: fewer samples of each, which the page says, and most of them folded."""
    many = [replace(log, name=f"{k} {log.name}") for k in range(6) for log in logs]
    content = written({"m1": file_of("m1", None), "m3": file_of("m3", None)}, many)
    assert len(content) < 5e6
    path = tmp_path / "many.html"
    path.write_bytes(content)
    page.open(path.as_uri())
    assert_alone(page, path.as_uri())
    assert "of 1201 samples, including the extremes of every interval" in page.run("document.body.innerText")
    assert page.run("document.querySelector('#motion summary').textContent") == "72 more runs"


@needs_chromium
@needs_xl330
def test_the_recordings_of_the_xl330_with_files_of_another_program(page, tmp_path, capsys):
    """BAM's own recordings and constants alone: three laws, below 5 MB, nothing claimed as known."""
    servo = load_actuator("xl330")
    paths = []
    for law in ("m1", "m3", "m6"):
        paths.append(tmp_path / f"{law}.json")
        paths[-1].write_text(json.dumps({**servo.published[law], "model": law, "actuator": "xl330"}))
    output = tmp_path / "report.html"
    words = [
        "report",
        "--params",
        *map(str, paths),
        "--logdir",
        str(XL330),
        "--arm-mass",
        "0",
        "--output",
        str(output),
    ]
    assert main(words) == 0
    assert output.stat().st_size < 5e6
    page.resize(400, phone=True)
    page.open(output.as_uri())
    assert_alone(page, output.as_uri())
    assert page.run("document.documentElement.scrollWidth") <= 400
    assert page.run("document.querySelectorAll('figure.zoom').length") == 12
    assert page.run("document.querySelectorAll('.sure').length") == 0
    assert "regard none of them as determined" in page.run("document.body.innerText")


def test_the_same_input_gives_the_same_file(content, logs):
    """Byte for byte, and no address in it but names of namespaces."""
    files = {law: file_of(law, provenance_of(logs[:10], logs[10:])) for law in ("m1", "m3")}
    assert written({**files, "m6": file_of("m6", None)}, logs) == content
    assert set(re.findall(rb"https?://[^\s\"']+", content)) <= {b"http://www.w3.org/2000/svg"}


@pytest.mark.slow
def test_the_scripts_of_a_page_are_those_that_its_policy_allows(content):
    """One script, one style, none of them from elsewhere."""
    text = content.decode()
    assert text.count("<script") == 1
    assert re.search(r"default-src 'none'; .*script-src 'sha256-[A-Za-z0-9+/]{43}='", text)
    assert not re.search(r"<(?:script|img|link)[^>]+src=", text)
