"""felicity reproduce: which published figures hold?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json, Quiet
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.wording import decimal

if TYPE_CHECKING:
    from felicity.papers.reproduce import Checked, Paper

LIST = "list"
ALL = "all"
NOT_AS_EXPECTED = 1
# With more claims than this only those are printed that do not simply hold.
SHORT = 60


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="A paper's name, `list`, `all`, or a .toml claims file."),
    ],
    level: Annotated[
        str, typer.Option(help="data: compute from published files; model: run models as well.")
    ] = "data",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME=MODEL",
            help="Weights for a model of the paper: a folder or a hub name; repeatable.",
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(help="Only claims with this id, or pattern such as 'table2/*'; repeatable."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write.  [default: runs/PAPER-reproduce]")
    ] = None,
    every: Annotated[bool, typer.Option("--every", help="Print every claim of a long list.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the printed figures of a paper against published data.

    Every figure is computed again and compared with what is printed: it holds, holds with an error of the
    authors, or does not hold; each with a reason. Claims that need weights are not run unless
    --level model and -m give them. Writes claims.json, claims.csv and report.html, which shows the paper's
    tables with both figures in each cell and the code behind them. Exits with 0 when every claim has its
    expected status, else with 1.

    A claims file of your own lets a reader check your paper with one command; it may name Python functions
    in files beside it, which are run.

    \b
    Examples:
      felicity reproduce list
      felicity reproduce lau2020
      felicity reproduce shivagunde2023 --claim 'table5/*' --json
      felicity reproduce huynh2022 --level model -m gpt2=gpt2 --claim 'preference/*'
      felicity reproduce my_paper/claims.toml -o my_paper/check
    """
    from felicity.papers.reproduce import describe, list_papers, read_paper, write_check
    from felicity.run import default_folder

    if paper == LIST:
        _print_list([read_paper(name) for name in list_papers()], json=json)
        return
    names = list_papers() if paper == ALL else [paper]
    checks = []
    for name in names:
        checked = _check(read_paper(name), level, model or [], claim or [], quiet=quiet or json)
        folder = output or default_folder(checked.paper.name, "reproduce")
        page = write_check(checked, folder / checked.paper.name if output and paper == ALL else folder)[-1]
        for complaint in checked.complaints:
            err.print(complaint, soft_wrap=True, markup=False, highlight=False)
        if not json:
            _print_check(checked, every=every)
            out.print(f"Page: {page}", soft_wrap=True, markup=False)
        checks.append(checked)
    if json:
        told = [describe(checked) for checked in checks]
        print_json({"papers": told} if paper == ALL else told[0])
    if not all(checked.as_expected for checked in checks):
        raise typer.Exit(NOT_AS_EXPECTED)


def _check(paper: "Paper", level: str, models: list[str], only: list[str], *, quiet: bool) -> "Checked":
    from felicity.papers.reproduce import check_paper

    with progress_bar(paper.name, quiet=quiet) as bar:
        return check_paper(paper, level=level, models=_bind(models), only=only, progress=bar)


def _bind(models: list[str]) -> dict[str, str]:
    from felicity.core.errors import BadInput

    bound: dict[str, str] = {}
    for text in models:
        name, equals, spec = text.partition("=")
        if not (name and equals and spec):
            raise BadInput(f"-m {text} is not written NAME=MODEL, as in gpt2=./my-gpt2.")
        bound[name] = spec
    return bound


def _print_list(papers: list["Paper"], *, json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "paper": paper.name,
            "claims": len(paper.claims),
            "from data": sum(claim.compute is not None for claim in paper.claims),
            "models": len({claim.model for claim in paper.claims if claim.run}),
            "title": paper.title,
        }
        for paper in papers
    ]
    if json:
        print_json({"papers": [{key.replace(" ", "_"): value for key, value in row.items()} for row in rows]})
        return
    print_rows(rows, right=("claims", "from data", "models"))


def _print_check(checked: "Checked", *, every: bool) -> None:
    from felicity.papers.reproduce import count_statuses

    out.print(f"\n[bold]{checked.paper.name}[/]: {checked.paper.title}", soft_wrap=True)
    shown = [
        verdict
        for verdict in checked.verdicts
        if every or len(checked.verdicts) <= SHORT or verdict.status != "holds" or not verdict.as_expected
    ]
    rows = [
        {
            "": "" if verdict.as_expected else "!",
            "claim": verdict.claim.where,
            "printed": verdict.claim.printed.text,
            "computed": verdict.shown,
            "status": verdict.status + ("" if verdict.as_expected else f" (expected: {verdict.expected})"),
            "why": verdict.why,
        }
        for verdict in shown
    ]
    if rows:
        print_rows(rows, right=("printed", "computed"))
    if len(shown) < len(checked.verdicts):
        rest = len(checked.verdicts) - len(shown)
        out.print(f"{rest} further claims hold as printed; --every lists them.")
    for group, counts in count_statuses(checked).items():
        parts = ", ".join(f"{status}: {number}" for status, number in counts.items())
        out.print(f"{group} ({sum(counts.values())}): {parts}", soft_wrap=True, markup=False)
    unexpected = sum(not verdict.as_expected for verdict in checked.verdicts)
    told = "Every claim that was run has its expected status."
    if unexpected:
        told = f"{unexpected} of {len(checked.verdicts)} claims do not have their expected status."
    out.print(f"{told} {decimal(checked.seconds, 1)} s.")
