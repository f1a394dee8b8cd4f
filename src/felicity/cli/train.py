"""felicity train: n-gram, LSTM and TDLM models from a corpus."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from felicity.cli.model_options import takes_groups
from felicity.cli.options import Device, Json, Quiet
from felicity.cli.terminal import err, out, print_json, progress_bar, step_bar
from felicity.core.wording import decimal

if TYPE_CHECKING:
    from felicity.engines.trained import Prepared, TopicSettings, TrainingSettings

NETWORK, TRAINING, TOPICS = "Network", "Training", "Topics"
COMPARED = "ngram.json"
Corpus = Annotated[
    Path,
    typer.Argument(metavar="CORPUS", help="A text file, plain or .gz, one sentence or paragraph per line."),
]
Valid = Annotated[Path | None, typer.Option(help="Held-out text to measure perplexity on.")]
Words = Annotated[
    str,
    typer.Option(help="Split at white space and around punctuation, or (for tokenized text) at spaces only."),
]

Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for the model and its checkpoints.")]
WordCasing = Annotated[str, typer.Option(help="Casing: keep or lower.")]
MinCount = Annotated[int, typer.Option(help="Rarer words become <unk>.")]
Epochs = Annotated[int, typer.Option(help="Maximum number of epochs.")]
Patience = Annotated[
    int, typer.Option(help="Epochs without a better validation perplexity before training ends.")
]
Embedding = Annotated[int, typer.Option(help="Size of word vectors.")]
Embeddings = Annotated[
    Path | None, typer.Option(help="Initial word vectors, in word2vec's text format, plain or .gz.")
]
Hidden = Annotated[int, typer.Option(help="Size of the LSTM's hidden vector.")]
Layers = Annotated[int, typer.Option(help="Layers of the LSTM.")]
Dropout = Annotated[float, typer.Option(help="Share of the LSTM's input and output dropped in training.")]
Steps = Annotated[int, typer.Option(help="Words of truncated back-propagation.")]
Batch = Annotated[int, typer.Option(help="Sequences per batch.")]
Rate = Annotated[float, typer.Option(help="Learning rate of Adam.")]
Held = Annotated[
    float, typer.Option(help="Share of the lines held out for validation if --valid is not given.")
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Minutes = Annotated[float, typer.Option(help="Minutes between checkpoints within an epoch.")]
Kept = Annotated[
    list[int] | None,
    typer.Option(
        "--checkpoints",
        min=1,
        help="Keep a copy of the model after this many words, for `felicity trajectory`; repeatable.",
    ),
]
NgramOrder = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Order of the n-gram model whose perplexity on the same text is printed for comparison; 0 for "
        "none.  [default: 5, for corpora of at most 10 million words]",
    ),
]
# An n-gram model is estimated in memory, about 200 bytes per word for order 5.
COMPARED_ORDER = 5
COMPARED_WORDS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions:
    """How an LSTM, or the LSTM of a TDLM, is trained."""

    panels: ClassVar = dict.fromkeys(
        ("embedding", "embeddings", "hidden", "layers", "dropout"), NETWORK
    ) | dict.fromkeys(
        ("epochs", "patience", "steps", "batch", "rate", "held", "minutes", "checkpoints"), TRAINING
    )

    valid: Valid = None
    words: Words = "punctuation"
    casing: WordCasing = "lower"
    min_count: MinCount = 10
    epochs: Epochs = 10
    patience: Patience = 2
    embedding: Embedding = 300
    embeddings: Embeddings = None
    hidden: Hidden = 600
    layers: Layers = 1
    dropout: Dropout = 0.4
    steps: Steps = 30
    batch: Batch = 64
    rate: Rate = 0.001
    held: Held = 0.05
    seed: Seed = 1
    minutes: Minutes = 10.0
    checkpoints: Kept = None
    ngram: NgramOrder = None
    device: Device = "auto"

    def build(self, topic: "TopicSettings | None" = None) -> "TrainingSettings":
        """The settings of the training; with `topic` those of a TDLM.

        Raises UnknownName for another way to split or case words.
        """
        from felicity.engines.trained import TrainingSettings
        from felicity.engines.words import check_casing, check_splitting

        known = {field.name for field in fields(TrainingSettings)}
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name in known}
        words = {"cut": check_splitting(self.words), "casing": check_casing(self.casing)}
        return TrainingSettings(**named | words, topic=topic)


def train_in_folder(
    corpus: Path,
    folder: Path,
    settings: "TrainingSettings",
    options: RecurrentOptions,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Read the corpus, train, and report each epoch."""
    from felicity.engines.ngram import keep_perplexity
    from felicity.engines.runtime import choose_device, prepare_processor
    from felicity.engines.trained import begin_training, prepare, train

    silent = quiet or json
    place = choose_device(options.device)
    prepare_processor()
    with progress_bar(f"reading {corpus.name}", quiet=silent) as progress:
        prepared = prepare(
            corpus, settings, valid=options.valid, embeddings=options.embeddings, progress=progress
        )
    if not silent:
        told = prepared.corpus
        err.print(
            f"{told['tokens']:,} words in {told['lines']:,} lines to train on, {told['held_tokens']:,} in "
            f"{told['held_lines']:,} to validate; {len(prepared.table):,} types; {place}.",
            soft_wrap=True,
        )
    compared = compare_with_ngram(prepared, options.ngram, kept=folder / COMPARED)
    begin_training(prepared, folder, settings)
    if compared:
        keep_perplexity(folder / COMPARED, compared.perplexity, order=compared.order, key=prepared.key)
    if compared and not silent:
        err.print(f"{compared.say()} on the same text.", soft_wrap=True)

    def tell(row: dict[str, float]) -> None:
        if not silent:
            err.print(
                f"epoch {row['epoch']}: perplexity {decimal(row['train'], 1)} in training, "
                f"{decimal(row['valid'], 1)} in validation ({decimal(row['seconds'], 0)} s)",
                soft_wrap=True,
            )

    with step_bar(quiet=silent) as bar:
        outcome = train(
            prepared,
            folder,
            settings,
            device=place,
            minutes=options.minutes,
            kept=sorted(options.checkpoints or ()),
            on_batch=(lambda epoch, done, total: bar(f"epoch {epoch}", done, total)) if bar else None,
            on_epoch=tell,
        )
    if json:
        found = {"model": str(folder), "epochs": outcome.epochs, "perplexity": outcome.best}
        print_json(found | ({"ngram": asdict(compared)} if compared else {}))
        return
    why = "it no longer fell" if outcome.stopped else "all epochs are done"
    out.print(
        f"{folder}: validation perplexity {decimal(outcome.best, 1)} after {outcome.epochs} epochs; {why}."
        + (f" {compared.say()} on the same text." if compared else ""),
        soft_wrap=True,
    )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """An n-gram model of the same text."""

    order: int
    perplexity: float

    def say(self) -> str:
        """As in: A 5-gram model (modified Kneser-Ney) has 148.4."""
        return f"A {self.order}-gram model (modified Kneser-Ney) has perplexity {decimal(self.perplexity, 1)}"


def compare_with_ngram(prepared: "Prepared", order: int | None, *, kept: Path) -> Comparison | None:
    """The n-gram model to compare with, on the same sequences of the same words; None if it is not wanted.

    kept: the file that its perplexity may be kept in, so that a resumed training does not estimate it again.

    Raises BadInput if an order was asked for and no line is long enough.
    """
    from felicity.core.errors import BadInput
    from felicity.engines.ngram import compare_perplexity, find_perplexity

    chosen = COMPARED_ORDER if order is None else order
    if chosen == 0 or (order is None and prepared.corpus["tokens"] > COMPARED_WORDS):
        return None
    perplexity = find_perplexity(kept, order=chosen, key=prepared.key)
    if perplexity is None:
        try:
            perplexity = compare_perplexity(*prepared.corpora, order=chosen)
        except BadInput:
            if order is None:
                return None
            raise
    return Comparison(order=chosen, perplexity=perplexity)


@takes_groups
def lstm(
    corpus: Corpus,
    output: Folder,
    *,
    options: RecurrentOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an LSTM language model, with the hyperparameters of Lau et al. (2017, 2020).

    Each line of CORPUS, a sentence or a paragraph, is a separate sequence. Run the same command again
    to resume training; it ends with exactly the weights of an uninterrupted training.

    \b
    Examples:
      felicity train lstm corpus.txt -o models/lstm
      felicity train lstm corpus.txt.gz --valid held-out.txt --device cuda -o models/lstm
      felicity run blimp -m models/lstm
    """
    train_in_folder(corpus, output, options.build(), options, json=json, quiet=quiet)


@takes_groups
def tdlm(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS", help="A text file, plain or .gz, one document per line.")
    ],
    output: Folder,
    topics: Annotated[int, typer.Option(help="How many topics.")] = 100,
    topic_size: Annotated[int, typer.Option(help="Size of a topic's vector.", rich_help_panel=TOPICS)] = 50,
    filters: Annotated[
        int, typer.Option(help="Filters of the document encoder.", rich_help_panel=TOPICS)
    ] = 20,
    width: Annotated[int, typer.Option(help="Words that a filter spans.", rich_help_panel=TOPICS)] = 2,
    document: Annotated[
        int, typer.Option(help="Maximum number of content words used per document.", rich_help_panel=TOPICS)
    ] = 300,
    topic_dropout: Annotated[
        float, typer.Option(help="Share of the document dropped in training.", rich_help_panel=TOPICS)
    ] = 0.6,
    frequent: Annotated[
        float,
        typer.Option(help="Share of word types too frequent to indicate a topic.", rich_help_panel=TOPICS),
    ] = 0.001,
    *,
    options: RecurrentOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a topically driven language model (TDLM), with the hyperparameters of Lau et al. (2017).

    Each line of CORPUS is a document; its sentences are separated by tabs, else by their punctuation. A
    context given in scoring is the text's document. Run the same command again to resume training.

    \b
    Examples:
      felicity train tdlm documents.txt --topics 50 -o models/tdlm
      felicity models info models/tdlm
      felicity judge "He left." "Him left." --context "They had quarrelled." -m models/tdlm
    """
    from felicity.engines.trained import TopicSettings

    topic = TopicSettings(
        topics=topics,
        size=topic_size,
        filters=filters,
        width=width,
        document=document,
        dropout=topic_dropout,
        frequent=frequent,
    )
    train_in_folder(corpus, output, options.build(topic), options, json=json, quiet=quiet)


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Train word-level models on a corpus.")


@app.command()
def ngram(
    corpus: Corpus,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write (.arpa or .arpa.gz).")],
    order: Annotated[int, typer.Option("--order", "-n", help="Words in the longest n-grams.")] = 5,
    valid: Valid = None,
    words: Words = "punctuation",
    casing: WordCasing = "keep",
    min_count: MinCount = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an n-gram model: interpolated modified Kneser-Ney, written as a standard ARPA file.

    \b
    Examples:
      felicity train ngram corpus.txt -n 5 -o model.arpa
      felicity train ngram corpus.txt.gz -n 3 --min-count 2 --valid held-out.txt -o model.arpa.gz
      felicity judge "The cats annoy Tim." "The cats annoys Tim." -m model.arpa
    """
    from felicity.engines.ngram import train_ngram
    from felicity.engines.words import check_casing, check_splitting

    splitting, cased = check_splitting(words), check_casing(casing)
    with progress_bar(f"reading {corpus.name}", quiet=quiet or json) as progress:
        report = train_ngram(
            corpus,
            output,
            order=order,
            splitting=splitting,
            casing=cased,
            min_count=min_count,
            valid=valid,
            progress=progress,
        )
    if json:
        print_json({"model": str(output)} | asdict(report))
        return
    counts = ", ".join(f"{count:,} {n}-grams" for n, count in enumerate(report.ngrams, start=1))
    out.print(f"{output}: {report.tokens:,} tokens in {report.lines:,} lines; {counts}.", soft_wrap=True)
    if report.perplexity is not None:
        held = f"Held-out perplexity {decimal(report.perplexity, 1)} ({report.unknown:,} unknown words)."
        out.print(held, soft_wrap=True)
    if report.fallback and not quiet:
        orders = ", ".join(str(n) for n in report.fallback)
        err.print(
            f"Order {orders}: too little text to estimate discounts; 0.5, 1 and 1.5 were used.",
            soft_wrap=True,
        )


app.command()(lstm)
app.command()(tdlm)
