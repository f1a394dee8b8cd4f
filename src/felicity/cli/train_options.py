"""Options of `felicity train`, said once."""

from pathlib import Path
from typing import Annotated

import typer

Corpus = Annotated[
    Path, typer.Argument(metavar="CORPUS", help="A text file, plain or .gz, a sentence or paragraph a line.")
]
Valid = Annotated[Path | None, typer.Option(help="Held-out text to measure perplexity on.")]
Words = Annotated[
    str, typer.Option(help="Cut at white space and around punctuation, or (tokenized text) at space only.")
]

Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for the model and its checkpoints.")]
WordCasing = Annotated[str, typer.Option(help="Casing: keep or lower.")]
MinCount = Annotated[int, typer.Option(help="Rarer words become <unk>.")]
Epochs = Annotated[int, typer.Option(help="Passes over the corpus, at most.")]
Patience = Annotated[int, typer.Option(help="Epochs without a better validation perplexity before the end.")]
Embedding = Annotated[int, typer.Option(help="Size of word vectors.")]
Embeddings = Annotated[
    Path | None, typer.Option(help="Word vectors to begin with, in word2vec's text format, plain or .gz.")
]
Hidden = Annotated[int, typer.Option(help="Size of the LSTM's hidden vector.")]
Layers = Annotated[int, typer.Option(help="Layers of the LSTM.")]
Dropout = Annotated[float, typer.Option(help="Share of the LSTM's input and output dropped in training.")]
Steps = Annotated[int, typer.Option(help="Words that gradients reach back.")]
Batch = Annotated[int, typer.Option(help="Sequences learned from at once.")]
Rate = Annotated[float, typer.Option(help="Learning rate of Adam.")]
Held = Annotated[float, typer.Option(help="Share of the lines held out, where --valid names no text.")]
Seed = Annotated[int, typer.Option(help="What all chance follows from.")]
Minutes = Annotated[float, typer.Option(help="Minutes between checkpoints within an epoch.")]
