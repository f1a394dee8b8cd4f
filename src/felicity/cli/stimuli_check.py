"""felicity stimuli check, and log verify: what is wrong with a set, or with a log."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import err, out, print_json, print_rows

log_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Verify the log of a review.")
CHANGED = 1


def check(
    dataset: Annotated[
        str, typer.Argument(metavar="FILE", help="A file of pairs, or a cloze dataset's name.")
    ],
    form: Annotated[
        str | None, typer.Option(help="How pairs are built: negation, role.  [default: detected]")
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(help="Only what this rule finds; repeatable.")] = None,
    json: Json = False,
) -> None:
    """Check a finished set by every rule, and list what they find.

    \b
    Examples:
      felicity stimuli check neg_1500_simp_temp
      felicity stimuli check role_1500 --rule duplicate --rule "repeated sentence"
      felicity stimuli check neg_temp.parquet --json
    """
    from felicity.core.errors import UnknownName
    from felicity.stimuli import read_sentence_pairs
    from felicity.stimuli.extension import (
        FORMS,
        RULES,
        RuleInput,
        Seen,
        check_set,
        count_findings,
        guess_form,
        read_wordnet,
        skipped_rules,
    )
    from felicity.studies.cloze import read_cloze_pairs

    for name in rule or ():
        if name not in RULES and name != "repeated sentence":
            raise UnknownName("rule", name, [*RULES, "repeated sentence"])
    path = Path(dataset)
    pairs = read_sentence_pairs(path) if path.suffix else read_cloze_pairs(dataset)
    chosen = FORMS[form] if form else guess_form(pairs)
    words = read_wordnet()
    found = check_set(pairs, chosen, words=words)
    found = [one for one in found if not rule or one[1].rule in rule]
    rows = [{"pair": pair.item, "rule": finding.rule, "reason": finding.reason} for pair, finding in found]
    if json:
        print_json({"pairs": len(pairs), "counts": count_findings(found), "findings": rows})
        return
    print_rows(rows)
    counts = count_findings(found)
    told = ", ".join(
        f"{name} {number}" for name, number in sorted(counts.items(), key=lambda entry: -entry[1])
    )
    err.print(
        f"{len(pairs):,} pairs, {len(rows):,} findings{': ' + told if told else ''}.",
        soft_wrap=True,
        markup=False,
    )
    missing = skipped_rules(RuleInput(form=chosen, seen=Seen(), words=words))
    if missing:
        err.print(
            f"Not checked, because WordNet is not installed: {', '.join(missing)}.",
            soft_wrap=True,
            markup=False,
        )


@log_app.command()
def verify(
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of `extend`, or its log.jsonl.")],
    last: Annotated[str | None, typer.Option(help="A hash noted earlier, which must be in the log.")] = None,
    json: Json = False,
) -> None:
    """Verify the hash chain of a log; exits with 1 if a line was changed.

    \b
    Examples:
      felicity stimuli log verify role_extended
    """
    from felicity.stimuli.review import verify_log

    verdict = verify_log(path / "log.jsonl" if path.is_dir() else path, last=last)
    if json:
        print_json(vars(verdict) | {"whole": verdict.whole})
    elif verdict.whole:
        out.print(
            f"{verdict.lines:,} lines, unbroken; the last hash is {verdict.last}",
            markup=False,
            soft_wrap=True,
        )
    else:
        out.print(f"{path}: {verdict.problem}. {verdict.lines:,} lines before it are unbroken.", markup=False)
    if not verdict.whole:
        raise typer.Exit(CHANGED)
