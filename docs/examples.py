"""Write the examples of the home page: the explorer of a run, a study to click through, and its picture.

felicity run starter -m smollm2 --sample 3 -o runs/starter-small
python docs/examples.py runs/starter-small
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from felicity.api.ratings import start_study
from felicity.explore import open_collections
from felicity.web import write_offline_page, write_preview_page

DOCS = Path(__file__).parent
EXAMPLES = DOCS / "examples"
TRIALS = 3


def main() -> int:
    """Write everything."""
    if len(sys.argv) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    with open_collections([Path(sys.argv[1])]) as collections:
        write_offline_page(collections, EXAMPLES / "explore.html")
    with tempfile.TemporaryDirectory() as folder:
        table = str(EXAMPLES / "agreement.csv")
        study = start_study(Path(folder) / "agreement", table, title="How sentences sound", minutes=5)
        write_preview_page(study, EXAMPLES / "trial.html", trials=TRIALS)
    draw_trial(DOCS / "images" / "rating.png")
    return 0


def draw_trial(path: Path) -> None:
    """A trial on a wide screen, and on a phone in dark mode, side by side."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    shots = []
    with sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for width, height, scheme in ((900, 600, "light"), (360, 600, "dark")):
            phone = width < 600
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                device_scale_factor=1.5,
                is_mobile=phone,
                has_touch=phone,
            )
            page.goto((EXAMPLES / "trial.html").as_uri())
            for _ in range(2):
                page.click("#next")
            frame = page.frame_locator("#page")
            frame.locator("form.trial").wait_for()
            page.evaluate("document.querySelector('.preview-bar').hidden = true")
            frame.locator("[name=answer][value='6']").check(force=True)
            page.wait_for_timeout(300)
            shots.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
        browser.close()
    picture = Image.new("RGB", (sum(shot.width for shot in shots) + 24, shots[0].height), "white")
    left = 0
    for shot in shots:
        picture.paste(shot, (left, 0))
        left += shot.width + 24
    picture.quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
