"""What `felicity train lstm` and `felicity train tdlm` say while they work."""

from pathlib import Path
from typing import TYPE_CHECKING

from felicity.cli.terminal import err, out, print_json, progress_bar, step_bar

if TYPE_CHECKING:
    from felicity.engines.trained.settings import TrainingSettings


def train_in_folder(
    corpus: Path,
    folder: Path,
    settings: "TrainingSettings",
    valid: Path | None,
    device: str,
    minutes: float,
    *,
    embeddings: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    """Read the corpus, train, and say how each epoch went."""
    from felicity.engines.devices import choose_device, prepare_processor
    from felicity.engines.trained.preparation import prepare
    from felicity.engines.trained.training import train

    silent = quiet or json
    place = choose_device(device)
    prepare_processor()
    with progress_bar(f"reading {corpus.name}", quiet=silent) as progress:
        prepared = prepare(corpus, settings, valid=valid, embeddings=embeddings, progress=progress)
    if not silent:
        told = prepared.corpus
        err.print(
            f"{told['tokens']:,} words in {told['lines']:,} lines to train on, {told['held_tokens']:,} in "
            f"{told['held_lines']:,} to validate; {len(prepared.table):,} types; {place}.",
            soft_wrap=True,
        )

    def tell(row: dict[str, float]) -> None:
        if not silent:
            err.print(
                f"epoch {row['epoch']}: perplexity {row['train']:.1f} in training, {row['valid']:.1f} in "
                f"validation ({row['seconds']:.0f} s)",
                soft_wrap=True,
            )

    with step_bar(quiet=silent) as bar:
        outcome = train(
            prepared,
            folder,
            settings,
            device=place,
            minutes=minutes,
            on_batch=(lambda epoch, done, total: bar(f"epoch {epoch}", done, total)) if bar else None,
            on_epoch=tell,
        )
    if json:
        print_json({"model": str(folder), "epochs": outcome.epochs, "perplexity": outcome.best})
        return
    why = "it no longer fell" if outcome.stopped else "all epochs are done"
    out.print(
        f"{folder}: validation perplexity {outcome.best:.1f} after {outcome.epochs} epochs; {why}.",
        soft_wrap=True,
    )
