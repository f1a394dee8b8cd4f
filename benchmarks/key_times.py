"""Recorded reading times against scripted keys: how far a word's time is from the time between two keys.

A real server in a process of its own, a real browser. Keys are sent through the browser's own protocol at
random intervals, and the clock of this program is read when each is sent; a recorded time should be
the time between two of them. Run it on a machine that is otherwise idle.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from felicity.humans import Store, read_rating_study
from felicity.humans.tables import answers
from felicity.web import find_port

STUDY = """\
[study]
title = "Benchmark"
[consent]
text = "Agree?"
agree = "Yes"
[task]
kind = "reading"
question = "Read the sentence."
[stimuli]
file = "stimuli.csv"
[design]
lists = "all"
"""
WORDS = "The baker who lives near the old bridge sold twelve loaves before noon ."
KEY = {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32}


def main() -> int:
    """Measure, print, and fail where an error is above what is allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--mean", type=float, default=0.1, help="the largest mean error, ms")
    parser.add_argument("--sd", type=float, default=2.0, help="the largest standard deviation, ms")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        rows = "".join(f"{n},{WORDS}\n" for n in range(options.trials))
        (folder / "stimuli.csv").write_text(f"item,text\n{rows}", encoding="utf-8")
        port = find_port()
        command = [sys.executable, "-m", "felicity", "rate", "serve", str(folder), "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            while "Researcher" not in (server.stdout.readline() if server.stdout else ""):
                if server.poll() is not None:
                    raise SystemExit("the server did not start")
            sent = read_sentences(f"http://127.0.0.1:{port}", options.trials)
            found = Store(read_rating_study(folder), None).rows(answers)
        finally:
            server.terminate()
            server.wait()
    recorded = [row.detail["ms"] for row in sorted(found, key=lambda row: row.step)]
    errors = np.concatenate([np.array(one) - np.diff(keys) for one, keys in zip(recorded, sent, strict=True)])
    mean, sd = float(errors.mean()), float(errors.std(ddof=1))
    print(
        f"{len(errors)} words: mean error {mean:+.3f} ms, SD {sd:.3f} ms, largest {abs(errors).max():.2f} ms"
    )
    return int(abs(mean) > options.mean or sd > options.sd)


def read_sentences(address: str, trials: int) -> list[list[float]]:
    """Read every sentence; the times at which its keys were sent, in ms."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise SystemExit("No Chromium was found; install one.")
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.check("[name=agree]")
        page.click("button.primary")
        sent = []
        for trial in range(1, trials + 1):
            page.wait_for_selector(f"h1:has-text('{trial} of {trials}')")
            page.wait_for_selector(".cross")
            sent.append(send_keys(page, trial))
        page.wait_for_selector(f"h1:has-text('{trials} of {trials}')", state="detached")
        browser.close()
    return sent


def send_keys(page: Page, seed: int) -> list[float]:
    """Press the space bar for the cross and every word, 150 to 450 ms apart."""
    draw = random.Random(seed)
    keyboard = page.context.new_cdp_session(page)
    times = []
    for _ in range(len(WORDS.split()) + 1):
        at = time.perf_counter() + draw.uniform(0.15, 0.45)
        # Sleep is too coarse at the end.
        time.sleep(max(at - time.perf_counter() - 0.02, 0))
        while time.perf_counter() < at:
            pass
        times.append(1000 * time.perf_counter())
        keyboard.send("Input.dispatchKeyEvent", {"type": "keyDown", **KEY})
        keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", **KEY})
    return times


if __name__ == "__main__":
    raise SystemExit(main())
