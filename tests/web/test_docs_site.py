"""The docs site as a reader has it: opened from the disk, without a network, in a real browser."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
pytest.importorskip("material", reason="needs mkdocs-material")
ROOT = Path(__file__).parents[2]
# Its paths are those of a server, so that it has neither style nor script on the disk.
NOT_ON_DISK = "404.html"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1100, "height": 800})
    yield context.new_page()
    context.close()


def test_the_site_is_searched_from_the_disk_without_a_network(page: Any, built: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((built / "index.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("krippendorff")
    found = page.locator(".md-search-result__link").first
    found.click()
    page.wait_for_url("**/*.html*")
    assert "krippendorff" in page.inner_text("main").lower()
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:", "blob:"))] == []


def test_the_home_page_has_an_explorer_and_a_trial_to_click_through(page: Any, built: Path) -> None:
    page.goto((built / "index.html").as_uri())
    assert page.locator("img[src$='starter.svg']").evaluate("one => one.naturalWidth") > 0
    explorer = page.frame_locator("iframe[src='examples/explore.html']")
    page.locator("iframe[src='examples/explore.html']").scroll_into_view_if_needed()
    explorer.locator("main").wait_for()
    page.locator("iframe[src='examples/trial.html']").scroll_into_view_if_needed()
    trial = page.frame_locator("iframe[src='examples/trial.html']").frame_locator("#page")
    trial.locator("[name=agree]").check()
    trial.locator("button.primary").click()
    trial.locator("form[data-answer] button.primary").click()
    trial.locator("form.trial").wait_for()
    assert "How natural does this sound?" in trial.locator("main").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (360, "dark")])
def test_every_page_of_the_site_is_accessible(chromium: Any, built: Path, width: int, scheme: str) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    pages = [path for path in sorted(built.rglob("*.html")) if path.name != NOT_ON_DISK]
    assert len(pages) > 60
    for path in pages:
        page.goto(path.as_uri())
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wider) <= 0, path
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{path} at {width}, {scheme}\n{found.generate_report()}"
    context.close()
