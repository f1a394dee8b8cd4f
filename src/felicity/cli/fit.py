"""felicity fit: regressions and mixed models on a run or a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    import polars as pl


def fit(
    formula: Annotated[str, typer.Argument(help="As lme4 writes it: 'y ~ x + (1 + x | subject)'.")],
    source: Annotated[
        Path, typer.Argument(metavar="RUN_OR_TABLE", help="A run folder, .csv, .tsv or .parquet.")
    ],
    family: Annotated[str, typer.Option(help="gaussian or binomial.")] = "gaussian",
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of REML.")] = False,
    contrast: Annotated[
        list[str] | None, typer.Option(help="Coding of a factor: FACTOR=sum or FACTOR=treatment.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="Of a run: its judgements by this measure.  [default: its first]")
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the coefficients into a .svg or .png file.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit a regression, with random effects where the formula has them.

    Linear mixed models are fitted by REML with Satterthwaite's degrees of freedom, binomial ones by Laplace
    with Wald z-tests; terms are named as lme4 names them. Of a run, the table is its judgements.

    \b
    Examples:
      felicity fit "rt ~ cond + (1 + cond|subj) + (1|item)" data.csv
      felicity fit "cbind(hits, n - hits) ~ period + (1|herd)" data.csv --family binomial
      felicity fit "margin ~ phenomenon + (1|suite)" runs/starter-smollm2 --contrast phenomenon=sum
    """
    from felicity.stats.fit import describe_fit, fit_model

    frame = read_source(source, measure)
    found = fit_model(
        formula,
        frame,
        family=family,  # type: ignore[arg-type]
        reml=not ml,
        contrasts=read_contrasts(contrast or []),
        level=level,
    )
    told = found.as_dict()
    if figure:
        _draw(told, figure)
    if json:
        print_json(told)
        return
    print_rows([_shown(row) for row in told["fixed"]], right=tuple(told["fixed"][0])[1:])
    if told.get("random"):
        out.print()
        print_rows([_shown(row) for row in told["random"]], right=("sd", "corr"))
    out.print("\n" + describe_fit(found), soft_wrap=True, markup=False)


def read_source(path: Path, measure: str | None) -> "pl.DataFrame":
    """The judgements of a run by one measure, or a table."""
    from felicity.core.errors import UnknownName
    from felicity.run.evaluate import read_run
    from felicity.stats.fit import read_table

    if not path.is_dir():
        return read_table(path)
    judged = read_run(path)["judgements"]
    known = judged["measure"].unique(maintain_order=True).to_list()
    if measure is not None and measure not in known:
        raise UnknownName("measure", measure, known, where=str(path))
    return judged.filter(measure=measure or known[0])


def read_contrasts(options: list[str]) -> dict[str, Any]:
    """FACTOR=CODING options as a mapping."""
    from felicity.core.errors import BadInput

    pairs = [option.partition("=") for option in options]
    wrong = [option for option, pair in zip(options, pairs, strict=True) if not pair[0] or not pair[2]]
    if wrong:
        raise BadInput(
            f"--contrast '{wrong[0]}' is not FACTOR=CODING; write for instance --contrast cond=sum."
        )
    return {name: coding for name, _, coding in pairs}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}


def _draw(told: dict[str, Any], figure: Path) -> None:
    from felicity.report.estimate_chart import Estimate, chart_estimates, write_figure

    rows = [Estimate(row["term"], row["estimate"], row["low"], row["high"]) for row in told["fixed"]]
    level = f"{100 * told['level']:g}% intervals"
    write_figure(chart_estimates(rows, title="Coefficients", subtitle=f"{told['formula']} · {level}"), figure)
