"""felicity stimuli review: a person accepts, rejects with a reason, edits, undoes."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.options import Quiet
from felicity.cli.terminal import err, out, print_rows
from felicity.core.wording import decimal, format_interval

if TYPE_CHECKING:
    from felicity.stimuli.extension import Extension
    from felicity.stimuli.review import Queue, Shown, State

KEYS = "a accept · r reject · e edit · u undo · b balance of targets · q quit"


def review(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of `felicity stimuli extend`.")],
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Review in the terminal, by keyboard.")
    ] = False,
    reviewer: Annotated[
        str | None, typer.Option(help="Your name in the log, with --terminal.  [default: your user name]")
    ] = None,
    second: Annotated[
        float | None, typer.Option(help="Share of the pairs that a second reviewer reads.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes a free one.")] = 0,
    summary: Annotated[bool, typer.Option("--summary", help="Only print the state of the review.")] = False,
    quiet: Quiet = False,
) -> None:
    """Review the proposed pairs: accept, reject with a reason, edit, undo.

    The queue opens as a page on this machine that several people may use at once. Every decision is a
    line of the folder's log, and the dataset is made of the log alone.

    \b
    Examples:
      felicity stimuli review role_extended
      felicity stimuli review role_extended --terminal --reviewer ada
      felicity stimuli review role_extended --second 0.1 --summary
    """
    from felicity.stimuli.extension import Extension
    from felicity.stimuli.review import Queue

    extension = Extension(folder)
    extension.task()
    queue = Queue(extension.log)
    if second is not None:
        queue.ask_second(second)
    if summary:
        print_summary(extension, queue.state)
        return
    if terminal:
        _review_here(queue, reviewer or getpass.getuser())
        pairs = extension.write_dataset()
        print_summary(extension, queue.state)
        err.print(f"{pairs:,} pairs are in {folder / 'dataset.parquet'}.", soft_wrap=True, markup=False)
        return
    from felicity.web import serve_review

    serve_review(extension, queue, port=port, quiet=quiet)


def _review_here(queue: "Queue", reviewer: str) -> None:
    from felicity.core.errors import FelicityError

    out.print(KEYS, markup=False)
    while True:
        shown = queue.show_next(reviewer)
        if shown is None:
            out.print("Nothing is waiting for you.")
            return
        _show(shown, len(queue.state.waiting))
        try:
            if not _carry_out(queue, shown, reviewer):
                return
        except FelicityError as error:
            out.print(str(error), markup=False, soft_wrap=True)


def _show(shown: "Shown", waiting: int) -> None:
    again = ", second reading" if shown.round > 1 else ""
    out.print(f"\n{shown.proposal.item} ({waiting:,} wait{again})", markup=False)
    for text in shown.proposal.texts:
        out.print(f"  {text}", markup=False, soft_wrap=True)
    for rule, reason in shown.proposal.flags:
        out.print(f"  ! {rule}: {reason}", markup=False, soft_wrap=True)


def _carry_out(queue: "Queue", shown: "Shown", reviewer: str) -> bool:
    """Carry out the command of a key; False for quit and at the end of the input."""
    try:
        return _apply_key(queue, shown, reviewer, input("> ").strip())
    except EOFError:
        return False


def _apply_key(queue: "Queue", shown: "Shown", reviewer: str, key: str) -> bool:
    from felicity.stimuli.extension import BY_PEOPLE

    item, round_ = shown.proposal.item, shown.round
    if key == "q":
        return False
    if key == "a":
        queue.decide(item, "accept", reviewer=reviewer, round=round_)
    elif key[:1] == "r":
        reasons = list(BY_PEOPLE)
        given = key[1:].strip() or input(f"  reason ({', '.join(reasons)}): ").strip()
        queue.decide(item, "reject", reviewer=reviewer, round=round_, reason=given)
    elif key == "e":
        texts = [input(f"  {text}\n  = ").strip() or text for text in shown.proposal.texts]
        queue.decide(item, "edit", reviewer=reviewer, round=round_, texts=texts)
    elif key == "u":
        queue.undo(reviewer)
    elif key == "b":
        _print_balance(queue.state)
    else:
        out.print(KEYS, markup=False)
    return True


def _print_balance(state: "State") -> None:
    from felicity.stimuli.review import balance_targets

    print_rows(balance_targets(state).head(20).to_dicts(), right=("first", "second", "both"))


def print_summary(extension: "Extension", state: "State") -> None:
    """The rejection table, the agreement of two readers, the balance of targets."""
    from felicity.stats import cohen_kappa
    from felicity.stimuli.review import PAPER_ROWS, list_second_readings, tabulate_rejections

    table = tabulate_rejections(state, PAPER_ROWS.get(extension.task().form))
    rows = [row | {"percent": decimal(row["percent"])} for row in table.to_dicts()]
    print_rows(rows, right=("sentences", "percent"))
    both = list_second_readings(state)
    if both.height:
        agreed = int((both["first"] == both["second"]).sum())
        told = f"Two readers agree on {agreed} of {both.height} pairs"
        if both["first"].n_unique() + both["second"].n_unique() > 2:
            row = cohen_kappa(both["first"], both["second"]).row(0, named=True)
            told += (
                f"; Cohen's kappa {decimal(row['kappa'])}, 95% CI {format_interval(row['low'], row['high'])}"
            )
        out.print(f"{told}.", markup=False)
    if state.accepted:
        _print_balance(state)
