"""Figures as files: for a slide, for a web page, for a paper."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from felicity.core.files import replacing
from felicity.report.drawing import convert_svg, draw_svg
from felicity.report.figures import Figure


def export_figures(figures: Iterable[Figure], folder: Path, *, endings: Sequence[str]) -> None:
    """Write each figure, with its title, as `folder`/figures/NAME.ENDING (svg, png or pdf).

    Each file is whole or absent. Raises FelicityError where the folder cannot be written.
    """
    for figure in figures:
        svg = draw_svg(figure.slide())
        for ending in endings:
            with replacing(folder / "figures" / f"{figure.name}.{ending}") as part:
                part.write_bytes(convert_svg(svg, ending))
