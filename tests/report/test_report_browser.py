"""The page in a real browser: its script runs, and no width of window makes it overflow."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from felicity.report import ReportInput, write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--virtual-time-budget=20000",
    "--dump-dom",
)
FRAME = """<!DOCTYPE html><title>frame</title><p id="found"></p>
<iframe id="page" src="report.html" style="width:{width}px;height:900px;border:0"></iframe>
<script>
document.getElementById("page").addEventListener("load", (event) => {{
  const view = event.target.contentWindow, page = view.document;
  const say = (word) => {{ document.getElementById("found").textContent += word + ";"; }};
  say("wider by " + (page.documentElement.scrollWidth - page.documentElement.clientWidth));
  const table = page.querySelector("#suites table"), head = table.tHead.rows[0].cells[0];
  head.querySelector("button").click();
  say("sorted " + head.getAttribute("aria-sort"));
  say("first " + table.tBodies[0].rows[0].cells[0].textContent);
  const tokens = page.querySelector(".sentence").querySelectorAll(".t");
  tokens[0].focus();
  tokens[0].dispatchEvent(new view.KeyboardEvent("keydown", {{ key: "ArrowRight", bubbles: true }}));
  say("focus on " + [...tokens].indexOf(page.activeElement));
  const tip = page.getElementById("tip");
  say("tip " + (tip.hidden ? "hidden" : tip.textContent.split("\\n").at(-1)));
  const shown = (kind) => [...page.querySelectorAll("svg." + kind)].filter((svg) => svg.clientWidth).length;
  say("wide " + shown("wide") + ", narrow " + shown("narrow"));
  view.prompt = (_, text) => {{ say(text.replaceAll(";", ",").split("\\n").slice(0, 4).join(" / ")); }};
  const copies = page.querySelector("#suites table").closest(".scroll").nextElementSibling;
  for (const button of copies.querySelectorAll("button")) button.click();
  page.querySelector(".case .copy button").click();
}});
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="needs chromium or chrome on the path")
@pytest.mark.parametrize(("width", "drawn"), [(1440, "wide 3, narrow 0"), (375, "wide 0, narrow 3")])
def test_the_page_works_in_a_browser(
    starter_run: ReportInput, tmp_path: Path, width: int, drawn: str
) -> None:
    write_report(starter_run, tmp_path)
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width), encoding="utf-8")
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<p id="found">([^<]*)</p>', done.stdout)
    assert found is not None
    words = unescape(found[1]).split(";")
    assert words[:4] == ["wider by 0", "sorted ascending", "first anaphor agreement 0", "focus on 1"]
    assert re.fullmatch(r"tip log p −\d+\.\d{3} nats · −\d+\.\d{3} bits", words[4])
    assert words[5] == drawn
    csv, latex, example = words[6:9]
    assert csv.startswith("Suite,Phenomenon,%,95% interval,Pairs,Ties,Within noise / anaphor agreement 0,")
    assert latex.startswith(r"\begin{tabular}{llrrrrr} / \toprule / Suite & Phenomenon & \% & 95\%")
    assert example.startswith(r"\begin{exe} / \ex\begin{xlist} / \ex[]{")
    assert re.search(r"\$_\{\d+\.\d\}\$", example)
