"""IPython and Jupyter: a real kernel executes a notebook; its HTML is drawn by Chromium."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest
from running import run_program
from venvs import ROOT, Spec

SPEC = Spec(extras=("ipykernel==7.4.0", "nbclient==0.11.0"))
SHOTS = ROOT / "target" / "screenshots"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return tmp_path_factory.mktemp("notebook") / "page.html"


@pytest.fixture(scope="module")
def cells(page) -> dict:
    return run_program("notebook.py", page, spec=SPEC, timeout=180)


def test_the_magic_shows_timeline_and_lines(cells):
    (html,) = cells["magic"]["html"]
    assert cells["magic"]["text"] == "2", "the cell's value is still shown"
    assert "peak 8.0 MiB active" in html
    rows = [re.sub("<[^>]*>", "|", row) for row in html.split("<tr")[1:]]
    assert len(rows) == 3
    assert "4.0 MiB" in rows[1] and "In [2]:5 in &lt;module&gt;" in rows[1], "the line as the editor numbers it"
    assert "In [1]:5 in helper" in rows[2], "of the cell that defined the function"
    svg = xml.etree.ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    titles = [element.text for element in svg.iter() if element.tag.endswith("title")]
    assert len(titles) == 160 and "up to 8.0 MiB active" in titles[-1]


def test_the_recording_is_kept_and_its_cells_are_named(cells):
    facts = json.loads(cells["data"]["stdout"])
    assert facts["lines"] == [["In [2]", 5, (4 << 20) + 4], ["In [1]", 5, 4 << 20]]
    assert {"In [1]", "In [2]"} <= set(facts["files"])
    assert not any(re.search(r"/ipykernel_\d+/", file) for file in facts["files"])
    assert facts["recording"] is None, "it has stopped"
    assert cells["rich"]["html"] == cells["trace"]["html"] != []
    assert "not started" in cells["not started"]["html"][0]
    assert "In [11]:3" in cells["graph"]["html"][0]


def test_exceptions_are_the_cells_own(cells):
    assert cells["raises"]["error"][:2] == cells["plain"]["error"][:2] == ["KeyError", "'mine'"]
    assert "mlx_memviz" not in cells["raises"]["error"][2], "no frame of ours"
    assert len(cells["raises"]["html"]) == 1, "what was recorded up to there is shown"
    assert cells["syntax"]["error"][0] == "SyntaxError" and "line 2" in cells["syntax"]["error"][1]
    assert "3q" in cells["option"]["stderr"] and cells["option"]["html"] == []


def test_cells_behave_as_without_the_magic(cells):
    assert cells["silent"]["text"] is None and cells["silent"]["error"] is None
    assert "shouted" in cells["magics inside"]["stdout"] and "per loop" in cells["magics inside"]["stdout"]


def test_hostile_names_are_text(cells):
    (html,) = cells["hostile"]["html"]
    assert "<img" not in html and "&lt;img src=x onerror=alert(1)&gt;&amp;" in html
    assert "\x1b" not in html


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on PATH: apt-get install chromium")
def test_chromium_draws_it_on_light_and_dark(cells, page):
    SHOTS.mkdir(parents=True, exist_ok=True)
    shot = SHOTS / "notebook.png"
    shot.unlink(missing_ok=True)
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,2400"]
    subprocess.run([*browser, f"--screenshot={shot}", page.as_uri()], capture_output=True, timeout=120, check=True)
    assert shot.stat().st_size > 20_000
    dumped = subprocess.run([*browser, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120).stdout
    # The parser found every element where it was meant: areas of both sums, and a hover title for each column.
    # Three recordings, drawn on two pages.
    assert dumped.count('<path d="M0 110V') == 6 * 2 and dumped.count("with the cache</title>") == 6 * 160
