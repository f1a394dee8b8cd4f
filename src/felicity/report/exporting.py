"""Figures as files: for a slide, for a web page, for a paper."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from felicity.core.files import replacing
from felicity.report.drawing import Spec, draw_pdf, draw_png, draw_svg
from felicity.report.figures import Figure

DRAWERS: Mapping[str, Callable[[Spec], bytes]] = {
    "svg": lambda spec: draw_svg(spec).encode("utf-8"),
    "png": draw_png,
    "pdf": draw_pdf,
}


def export_figures(figures: Iterable[Figure], folder: Path, *, endings: Sequence[str]) -> None:
    """Write each figure, with its title, as `folder`/figures/NAME.ENDING.

    Each file is whole or absent. Raises FelicityError where the folder cannot be written.
    """
    for figure in figures:
        slide = figure.slide()
        for ending in endings:
            with replacing(folder / "figures" / f"{figure.name}.{ending}") as part:
                part.write_bytes(DRAWERS[ending](slide))
