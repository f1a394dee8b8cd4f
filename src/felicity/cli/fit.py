"""felicity fit: regressions and mixed models on a run or a table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import err, out, print_json, print_rows
from felicity.core.wording import format_digits, p_cell

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
    from felicity.api import fit as fit_formula
    from felicity.report.charts import write_figure
    from felicity.stats import describe_codings

    found = fit_formula(
        formula,
        *sources,
        family=family,  # type: ignore[arg-type]
        link=link,
        ties=ties,  # type: ignore[arg-type]
        ml=ml,
        contrasts=read_contrasts(contrast or []),
        measure=measure,
        where=where or [],
        penalty=penalty,
        level=level,
    )
    if found.note:
        err.print(found.note, soft_wrap=True, markup=False)
    if figure:
        write_figure(found.figure(), figure)
    values = found.as_dict()
    if json:
        print_json(values)
        return
    key = describe_codings(values["codings"], values["references"])
    for rows in (values["fixed"], values.get("thresholds"), values["random"], key):
        if rows:
            print_rows(_shown(rows), right=NUMBERS)
            out.print()
    out.print(found.summary(), soft_wrap=True, markup=False)


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
    return [{name: _write(name, row[name]) for name in kept} for row in rows]


def _write(name: str, value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return p_cell(value) if name == "p" else format_digits(value)
