"""felicity train lstm and felicity train tdlm: recurrent models from a corpus of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Device, Json, Quiet
from felicity.cli.train_options import (
    Batch,
    Corpus,
    Dropout,
    Embedding,
    Embeddings,
    Epochs,
    Folder,
    Held,
    Hidden,
    Layers,
    MinCount,
    Minutes,
    Patience,
    Rate,
    Seed,
    Steps,
    Valid,
    WordCasing,
    Words,
)
from felicity.cli.training import train_in_folder


def lstm(
    corpus: Corpus,
    output: Folder,
    valid: Valid = None,
    words: Words = "punctuation",
    casing: WordCasing = "lower",
    min_count: MinCount = 10,
    epochs: Epochs = 10,
    patience: Patience = 2,
    embedding: Embedding = 300,
    embeddings: Embeddings = None,
    hidden: Hidden = 600,
    layers: Layers = 1,
    dropout: Dropout = 0.4,
    steps: Steps = 30,
    batch: Batch = 64,
    rate: Rate = 0.001,
    held: Held = 0.05,
    seed: Seed = 1,
    minutes: Minutes = 10.0,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an LSTM language model, with the hyper-parameters of Lau et al. (2017, 2020).

    Each line of CORPUS, a sentence or a paragraph, is read from its beginning. Run the same command again
    to go on where training stopped; it ends with the very weights of an unbroken one.

    \b
    Examples:
      felicity train lstm corpus.txt -o models/lstm
      felicity train lstm corpus.txt.gz --valid held-out.txt --device cuda -o models/lstm
      felicity run blimp -m models/lstm
    """
    from felicity.engines.trained.settings import TrainingSettings
    from felicity.engines.words.options import check_casing, check_cut

    settings = TrainingSettings(
        embedding=embedding,
        hidden=hidden,
        layers=layers,
        dropout=dropout,
        steps=steps,
        batch=batch,
        epochs=epochs,
        rate=rate,
        min_count=min_count,
        cut=check_cut(words),
        casing=check_casing(casing),
        held=held,
        patience=patience,
        seed=seed,
    )
    train_in_folder(
        corpus, output, settings, valid, device, minutes, embeddings=embeddings, json=json, quiet=quiet
    )


def tdlm(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS", help="A text file, plain or .gz, a document a line.")
    ],
    output: Folder,
    topics: Annotated[int, typer.Option(help="How many topics.")] = 100,
    topic_size: Annotated[int, typer.Option(help="Size of a topic's vector.")] = 50,
    filters: Annotated[int, typer.Option(help="Filters of the document encoder.")] = 20,
    width: Annotated[int, typer.Option(help="Words that a filter spans.")] = 2,
    document: Annotated[int, typer.Option(help="Content words of a document that are read, at most.")] = 300,
    topic_dropout: Annotated[float, typer.Option(help="Share of the document dropped in training.")] = 0.6,
    frequent: Annotated[
        float, typer.Option(help="Share of word types too frequent to tell of a topic.")
    ] = 0.001,
    valid: Valid = None,
    words: Words = "punctuation",
    casing: WordCasing = "lower",
    min_count: MinCount = 10,
    epochs: Epochs = 10,
    patience: Patience = 2,
    embedding: Embedding = 300,
    embeddings: Embeddings = None,
    hidden: Hidden = 600,
    layers: Layers = 1,
    dropout: Dropout = 0.4,
    steps: Steps = 30,
    batch: Batch = 64,
    rate: Rate = 0.001,
    held: Held = 0.05,
    seed: Seed = 1,
    minutes: Minutes = 10.0,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a topically driven language model (TDLM), with the hyper-parameters of Lau et al. (2017).

    Each line of CORPUS is a document; its sentences are parted by tabs, else found by their ends. A context
    given in scoring is the text's document. Run the same command again to go on where training stopped.

    \b
    Examples:
      felicity train tdlm documents.txt --topics 50 -o models/tdlm
      felicity models topics models/tdlm
      felicity judge "He left." "Him left." --context "They had quarrelled." -m models/tdlm
    """
    from felicity.engines.trained.settings import TopicSettings, TrainingSettings
    from felicity.engines.words.options import check_casing, check_cut

    settings = TrainingSettings(
        embedding=embedding,
        hidden=hidden,
        layers=layers,
        dropout=dropout,
        steps=steps,
        batch=batch,
        epochs=epochs,
        rate=rate,
        min_count=min_count,
        cut=check_cut(words),
        casing=check_casing(casing),
        held=held,
        patience=patience,
        seed=seed,
        topic=TopicSettings(
            topics=topics,
            size=topic_size,
            filters=filters,
            width=width,
            document=document,
            dropout=topic_dropout,
            frequent=frequent,
        ),
    )
    train_in_folder(
        corpus, output, settings, valid, device, minutes, embeddings=embeddings, json=json, quiet=quiet
    )
