"""felicity rate new: a study for raters, from a dataset, a table, a run, or what models wrote."""

from pathlib import Path
from typing import Annotated, Any

import typer

from felicity.cli.options import Json
from felicity.cli.rate_simulate import need_web
from felicity.cli.terminal import out, print_json
from felicity.core.errors import BadInput

CONTINUATIONS = "Continuations of a causality study"


def new(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder to make.")],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="A dataset, a run folder, a causality study, or a table with the columns item and text.",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help="likert, binary, choice, slider, magnitude, cloze, continuation, reading or maze.  "
            "[default: likert]"
        ),
    ] = None,
    points: Annotated[
        int | None, typer.Option(min=2, max=11, help="Points of a Likert scale.  [default: 7]")
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Only that many items of each suite.")] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Lists that the items are divided among.  [default: 1; of continuations 25]"
        ),
    ] = None,
    raters: Annotated[int | None, typer.Option(min=1, help="Raters per list.  [default: 3]")] = None,
    title: Annotated[str | None, typer.Option(help="The study's title, as raters read it.")] = None,
    minutes: Annotated[
        int | None, typer.Option(min=1, help="How long it takes, as raters read it.  [default: not said]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample, the lists and the orders.")] = 0,
    verbs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Verbs per bin of bias, the most frequent ones.  [default: 10]",
            rich_help_panel=CONTINUATIONS,
        ),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(min=1, help="Bins of bias.  [default: 10]", rich_help_panel=CONTINUATIONS)
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Noun pairs per verb, in both orders.  [default: 5]", rich_help_panel=CONTINUATIONS
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Model whose continuations are drawn, if there are several.",
            rich_help_panel=CONTINUATIONS,
        ),
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(
            help="Review folder with decisions about flagged continuations.", rich_help_panel=CONTINUATIONS
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write study.toml and stimuli.csv, ready to edit.

    study.toml has a comment for every setting. Lists follow from the columns item and condition of the table.
    From the folder of `felicity causality`, a stratified sample of what a model wrote is drawn. Nothing
    flagged is shown to raters: the noun pair is exchanged for another one of the verb, and what was flagged
    is written to STUDY/review; decide about it with `felicity stimuli review STUDY/review`, and draw again
    with --review.

    \b
    Examples:
      felicity rate new my-study --from lau2020
      felicity rate new pairs --from starter --task choice --sample 2
      felicity rate new my-study --from my_sentences.csv --points 5 --title "How sentences sound" --minutes 10
      felicity rate new continuations --from runs/causality --verbs 10 --bins 10 --parts 25
    """
    need_web()
    from felicity.api.ratings import has_continuations, start_study
    from felicity.humans import build_lists

    general = {"task": task, "points": points, "sample": sample, "title": title, "minutes": minutes}
    special = {"verbs": verbs, "bins": bins, "pairs": pairs, "model": model, "review": review}
    continued = has_continuations(source)
    other = [f"--{name}" for name, value in (general if continued else special).items() if value is not None]
    if other:
        what = "is the folder of a causality study" if continued else "is not the folder of a causality study"
        raise BadInput(f"{source} {what}; leave out {', '.join(other)}.")
    if continued:
        _draw_continuations(study, Path(source), special, parts=parts, raters=raters, seed=seed, json=json)
        return
    made = start_study(
        study,
        source,
        task=task or "likert",
        points=points,
        sample=sample,
        parts=parts,
        raters=raters,
        title=title,
        minutes=minutes,
        seed=seed,
    )
    lists = build_lists(made)
    if json:
        print_json({"stimuli": len(made.stimuli), "lists": len(lists), "raters": made.design.quota})
        return
    design = f"{' and '.join(made.design.between)} between raters; " if made.design.between else ""
    out.print(
        f"{study}: {len(made.stimuli)} stimuli in {len(lists)} lists of {len(lists[0].rows)}, {design}"
        f"{made.design.quota} raters each. Edit {study / 'study.toml'}, then: felicity rate preview {study}",
        soft_wrap=True,
        markup=False,
    )
    unsaid = [option for option, given in (("--title", title), ("--minutes", minutes)) if given is None]
    if unsaid:
        how = (
            "no duration" if title else f"the title '{made.title}'" + ("" if minutes else " and no duration")
        )
        out.print(
            f"Raters read {how}; give {' and '.join(unsaid)}, or write it into study.toml.",
            soft_wrap=True,
            markup=False,
        )


def _draw_continuations(
    study: Path,
    source: Path,
    given: dict[str, Any],
    *,
    parts: int | None,
    raters: int | None,
    seed: int,
    json: bool,
) -> None:
    """A study of what a model of a causality study wrote; says how balanced the sample is."""
    from felicity.studies.causality import SampleSize, check_balance, start_rating

    sizes = {name: given[name] for name in ("verbs", "bins", "pairs") if given[name] is not None}
    size = SampleSize(**sizes, **({"lists": parts} if parts else {}))
    made, drawn = start_rating(
        study,
        source,
        size=size,
        model=given["model"],
        review=given["review"],
        raters=raters or 3,
        seed=seed,
    )
    balance = check_balance(drawn)
    if json:
        print_json({"balance": balance, "flagged": drawn.review.height, "notes": list(drawn.notes)})
        return
    told = list(drawn.notes)
    spread = ", ".join(
        f"{value[0]} to {value[1]} per {part}" for part, value in balance.items() if isinstance(value, list)
    )
    told.append(
        f"{study}: {balance['n']} continuations in {size.lists} lists ({spread}), {made.design.quota} raters "
        f"each. Edit {study / 'study.toml'}, then: felicity rate preview {study}"
    )
    if drawn.review.height:
        told.append(
            f"{drawn.review.height} flagged continuations await review: "
            f"felicity stimuli review {study / 'review'}"
        )
    for line in told:
        out.print(line, soft_wrap=True, markup=False)
