"""felicity compare: models on the same items."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.fit import read_source
from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    import polars as pl


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN...", help="Run folders of the same items.")],
    measure: Annotated[str | None, typer.Option(help="Judgements by this measure.")] = None,
    test: Annotated[
        str | None, typer.Option(help="exact, mid or permutation.  [default: permutation over suites]")
    ] = None,
    ties: Annotated[str, typer.Option(help="Count a tie as wrong, as half, or drop the item.")] = "wrong",
    items: Annotated[bool, typer.Option("--items", help="Treat items, not suites, as independent.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of bootstrap and permutations.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the differences into a .svg or .png file.")
    ] = None,
    json: Json = False,
) -> None:
    """Test the accuracies of two or more runs against each other, item by item.

    Every pair of runs is compared on its shared items; p-values are adjusted over all pairs (Holm;
    Benjamini and Hochberg). By default suites are drawn again and flipped as wholes.

    \b
    Examples:
      felicity compare runs/blimp-gpt2 runs/blimp-smollm2
      felicity compare runs/a runs/b runs/c --test exact --items --json
    """
    from felicity.stats.compare import compare_all, describe_comparison

    frames = name_runs(runs, measure)
    clustered = not items and all(frame["suite"].n_unique() > 1 for frame in frames.values())
    table = compare_all(
        frames,
        cluster="suite" if clustered else None,
        ties=ties,  # type: ignore[arg-type]
        test=test,  # type: ignore[arg-type]
        seed=seed,
    )
    if figure:
        _draw(table, figure)
    if json:
        print_json(table.to_dicts())
        return
    print_rows([_shown(row) for row in table.to_dicts()], right=("difference", "interval", "p", "Holm", "BH"))
    out.print("\n" + describe_comparison(table), soft_wrap=True, markup=False)


def name_runs(runs: list[Path], measure: str | None) -> dict[str, "pl.DataFrame"]:
    """Judgements by the model's name, or by the folder's where two are of one model."""
    from felicity.core.errors import BadInput
    from felicity.run.folder import RunFolder

    models = [str(RunFolder(path).read_manifest()["model"].get("name")) for path in runs]
    names = models if len(set(models)) == len(models) else [str(path) for path in runs]
    if len(set(names)) < len(names):
        raise BadInput("A run is named twice; compare different runs.")
    return {name: read_source(path, measure) for name, path in zip(names, runs, strict=True)}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "first": f"{row['first']} {100 * row['accuracy_first']:.1f}",
        "second": f"{row['second']} {100 * row['accuracy_second']:.1f}",
        "difference": f"{100 * row['difference']:+.1f}",
        "interval": f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}",
        "p": f"{row['p']:.4g}",
        "Holm": f"{row['p_holm']:.4g}",
        "BH": f"{row['p_bh']:.4g}",
    }


def _draw(table: "pl.DataFrame", figure: Path) -> None:
    from felicity.report.estimate_chart import Estimate, chart_estimates, write_figure

    rows = [
        Estimate(
            f"{row['first']} - {row['second']}", *(100 * row[key] for key in ("difference", "low", "high"))
        )
        for row in table.to_dicts()
    ]
    spec = chart_estimates(rows, title="Differences in accuracy", subtitle="95% intervals", axis="points")
    write_figure(spec, figure)
