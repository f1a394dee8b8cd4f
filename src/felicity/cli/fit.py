"""felicity fit: regressions and mixed models on a run or a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import err, out, print_json, print_rows

if TYPE_CHECKING:
    import polars as pl


NUMBERS = ("estimate", "se", "df", "statistic", "p", "low", "high", "sd", "corr")


def fit(
    formula: Annotated[str, typer.Argument(help="In lme4's notation: 'y ~ x + (1 + x | subject)'.")],
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_OR_TABLE...", help="Run folders, or one .csv, .tsv or .parquet."),
    ],
    family: Annotated[str, typer.Option(help="gaussian, binomial or cumulative.")] = "gaussian",
    link: Annotated[
        str | None, typer.Option(help="Link of a cumulative model: logit or probit.  [default: logit]")
    ] = None,
    ties: Annotated[
        str, typer.Option(help="Judgements of 0.5 in a binomial model: drop, or count as wrong.")
    ] = "drop",
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of REML.")] = False,
    contrast: Annotated[
        list[str] | None, typer.Option(help="Coding of a factor: FACTOR=sum or FACTOR=treatment.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="For a run: use its judgements by this measure.  [default: its first]")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Only these rows; repeatable.")
    ] = None,
    penalty: Annotated[
        float | None,
        typer.Option(help="Scale of a weak prior on the SDs of random effects, in log-odds; 2 is weak."),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    figure: Annotated[Path | None, typer.Option(help="Draw the coefficients to a .svg or .png file.")] = None,
    json: Json = False,
) -> None:
    """Fit a regression, with random effects if the formula has them.

    Linear mixed models are fitted by REML with Satterthwaite's degrees of freedom, binomial and cumulative
    (ordinal) ones by Laplace with Wald z-tests; without random terms they are R's lm, glm and clm. Terms are
    named as lme4 names them. A fit that separates right from wrong (SDs or coefficients beyond 10 log-odds,
    R2 beyond .99) is called degenerate; --penalty fits it with a weak prior, as blme does. For a run, the
    table is its judgements (margin, passed), or its stimuli if the response is a measure or `surprisal`;
    several runs are stacked, with a column `model`.

    \b
    Examples:
      felicity fit "rt ~ cond + (1 + cond|subj) + (1|item)" data.csv
      felicity fit "cbind(hits, n - hits) ~ period + (1|herd)" data.csv --family binomial
      felicity fit "rating ~ context * bias + (1|rater) + (1|item)" ratings.csv --family cumulative
      felicity fit "margin ~ phenomenon + (1|suite)" runs/starter-smollm2 --contrast phenomenon=sum
      felicity fit "margin ~ model * phenomenon + (1|item)" runs/blimp-gpt2 runs/blimp-smollm2
    """
    from felicity.core.schemas import SIMULATED_NOTE, is_simulated
    from felicity.stats import describe_fit, filter_rows, fit_model
    from felicity.stats.mixed import describe_codings

    frame = filter_rows(read_sources(sources, formula, measure), where or [])
    if is_simulated(frame):
        err.print(SIMULATED_NOTE, soft_wrap=True, markup=False)
    found = fit_model(
        formula,
        frame,
        family=family,  # type: ignore[arg-type]
        link=link,
        ties=ties,  # type: ignore[arg-type]
        reml=not ml,
        contrasts=read_contrasts(contrast or []),
        level=level,
        penalty=penalty,
    )
    told = found.as_dict()
    if figure:
        _draw(told, figure)
    if json:
        print_json(told)
        return
    key = describe_codings(told["codings"], told["references"])
    for rows in (told["fixed"], told.get("thresholds"), told["random"], key):
        if rows:
            print_rows(_shown(rows), right=NUMBERS)
            out.print()
    out.print(describe_fit(found, effects=False), soft_wrap=True, markup=False)


def read_sources(paths: list[Path], formula: str, measure: str | None) -> "pl.DataFrame":
    """The table of runs that the formula is about, or a table from a file.

    Raises BadInput if a path does not exist or the formula names no response.
    """
    from felicity.core.errors import BadInput
    from felicity.core.files import read_frame
    from felicity.run import analysis_table

    for path in paths:
        if not path.exists():
            raise BadInput(f"There is no run folder or table {path}; check the path.")
    if all(path.is_dir() for path in paths):
        if "~" not in formula:
            raise BadInput(f"The formula '{formula}' must be 'response ~ predictors', with one '~'.")
        return analysis_table(paths, formula.partition("~")[0].strip(), measure=measure)
    if len(paths) > 1:
        raise BadInput("Give one table, or several run folders.")
    return read_frame(paths[0])


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


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Numbers to four digits, without empty columns."""
    kept = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [{name: _digits(row[name]) for name in kept} for row in rows]


def _digits(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def _draw(told: dict[str, Any], figure: Path) -> None:
    from felicity.core.errors import BadInput
    from felicity.report.charts import Estimate, chart_estimates, write_figure

    if not told["fixed"]:
        raise BadInput("The model has no coefficients to draw; leave --figure out or add a predictor.")
    rows = [Estimate(row["term"], row["estimate"], row["low"], row["high"]) for row in told["fixed"]]
    level = f"{100 * told['level']:g}% intervals"
    write_figure(chart_estimates(rows, title="Coefficients", subtitle=f"{told['formula']} · {level}"), figure)
