"""The documentation as a site: it builds without a warning, needs no network, and opens in a real browser."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import mcetm

ROOT = Path(__file__).parents[1]
LOOKED_AT = [
    "index.html",
    "tutorials/first-run.html",
    "how-to/compare.html",
    "reference/settings/mcetm.html",
    "reference/python/agents.html",
    "reference/command-line.html",
    "explanation/algorithms/mcetm.html",
    "explanation/claims.html",
    "research/studies/energy-error.html",
]
"""A page of each kind; those with the widest tables and formulas."""
WIDTHS = (390, 1280)
"""A phone and a desktop."""
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Opens each page in a frame of each width and notes how wide it becomes, then searches as a reader would.
_VISIT = """<!doctype html><body><script>
const wait = ms => new Promise(done => setTimeout(done, ms));
const open = (page, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.onload = () => done(frame);
  frame.src = page;
  document.body.append(frame);
});
(async () => {
  const found = {};
  for (const page of PAGES) for (const width of WIDTHS) {
    const frame = await open(page, width);
    const inside = frame.contentDocument;
    found[`${page} ${width}`] = [inside.querySelector("h1").textContent, inside.documentElement.scrollWidth];
    frame.remove();
  }
  const frame = await open("index.html", 1280);
  const query = frame.contentDocument.querySelector("[data-md-component=search-query]");
  query.focus();
  query.value = "trust region";
  for (let i = 0; i < 100 && !frame.contentDocument.querySelector(".md-search-result__item"); i++) {
    query.dispatchEvent(new frame.contentWindow.KeyboardEvent("keyup"));
    await wait(100);
  }
  found.search = frame.contentDocument.querySelectorAll(".md-search-result__item").length;
  frame.contentDocument.querySelector("#__palette_2")?.click();
  found.dark = frame.contentDocument.body.getAttribute("data-md-color-scheme");
  await fetch("found", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does: a warning is an error, dead links and anchors are warnings."""
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")):
        pytest.skip("the packages of the extra `docs` are not installed")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return out


class _Server(ThreadingHTTPServer):
    """Serves a folder, and takes what the browser reports."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
        self.reported = threading.Event()
        self.report = b""


class _Handler(SimpleHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        self.server.report = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.reported.set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture(scope="module")
def visited(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser found on the pages."""
    if BROWSER is None:
        pytest.skip("there is no chromium on this machine")
    visit = _VISIT.replace("PAGES", json.dumps(LOOKED_AT)).replace("WIDTHS", json.dumps(WIDTHS))
    (site / "visit.html").write_text(visit)
    profile = tmp_path_factory.mktemp("profile")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    options += ["--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    with _Server(site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_address[1]}/visit.html"
        browser = subprocess.Popen(
            [BROWSER, *options, place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert server.reported.wait(180), "the browser did not get through the pages"
        finally:
            browser.terminate()
            browser.wait(30)
            server.shutdown()
    return json.loads(server.report)


def test_no_page_asks_another_machine_for_anything(site: Path) -> None:
    asked = re.compile(r'<(?:script|img|iframe)[^>]* src="(?:https?:)?//|<link[^>]* href="(?:https?:)?//')
    outside = {page.name for page in site.rglob("*.html") if asked.search(page.read_text())}
    assert outside == set()
    assert "@import" not in "".join(sheet.read_text() for sheet in site.rglob("*.css"))


def test_wide_pictures_scroll_on_a_phone_and_small_ones_need_not(site: Path) -> None:
    for page, wide in (("explanation/method.html", True), ("explanation/algorithms/bc.html", False)):
        assert ('<span class="wide"><img' in (site / page).read_text()) == wide


def test_every_public_name_has_its_place_in_the_reference(site: Path) -> None:
    listed = (site / "reference" / "python" / "index.html").read_text()
    places = dict(re.findall(r'href="([\w.]+\.html#mcetm\.[\w.]+)"><code>mcetm\.(\w+)</code>', listed))
    assert set(places.values()) == set(mcetm.__all__)
    for place in places:
        page, anchor = place.split("#")
        assert f'id="{anchor}"' in (site / "reference" / "python" / page).read_text()


def test_every_setting_of_an_algorithm_is_in_the_reference(site: Path) -> None:
    from mcetm.pipeline.presets import algorithm_names, make_config
    from mcetm.settings import rows_of

    for name in algorithm_names():
        page = (site / "reference" / "settings" / f"{name}.html").read_text()
        for path, *_ in rows_of(make_config("quick", algo=name).algorithm, "algorithm"):
            assert f'id="{path}"' in page


def test_every_option_of_train_is_in_the_reference(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mcetm.cli import main

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    page = (site / "reference" / "command-line.html").read_text()
    for option in set(re.findall(r"(?<!\S)--[a-z][a-z-]*", capsys.readouterr().out)) - {"--help"}:
        assert f"<code>{option}</code>" in page


def test_pages_fit_a_phone_and_a_desktop(visited: dict[str, Any]) -> None:
    for page in LOOKED_AT:
        for width in WIDTHS:
            heading, needed = visited[f"{page} {width}"]
            assert heading
            assert needed <= width, f"{page} is {needed} wide on a screen of {width}"


def test_a_reader_can_search_and_turn_the_light_off(visited: dict[str, Any]) -> None:
    assert visited["search"] > 0
    assert visited["dark"] == "slate"
