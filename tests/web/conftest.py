"""What several tests of the sites need: a real browser, and the explorer over two small runs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from felicity.explore import open_collections
from felicity.run import open_model
from felicity.web import create_explore_site, running
from tests.explore.runs import make_runs
from tests.web.sites import EXPLORE_KEY

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs chromium or chrome on the path")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs to explore."""
    return make_runs(tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="module")
def explorer(runs: tuple[Path, Path]) -> Iterator[str]:
    """The address of the explorer over them; it answers whoever knows EXPLORE_KEY."""
    lm = open_model(str(runs[0].parent / "tiny"), cache=False)
    with open_collections(runs) as collections:
        with running(create_explore_site(collections, {"tiny": lm}, key=EXPLORE_KEY)) as address:
            yield address
