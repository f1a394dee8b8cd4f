"""LSTM and TDLM models: log p(word | the words before it), for TDLM also given a document.

An LSTM reads a context before the text, as running text. A TDLM takes it as the document that contains the
text: the content words of the context, at most as many as in training; without a context the topic vector
is zero.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from felicity.core.engine import NO_EXTRAS, EngineInfo, Sampling, TokenExtras
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.causal import continue_words, fill_words, score_next
from felicity.engines.runtime import (
    BATCH_TOKENS,
    Compute,
    TokenScorer,
    build_encodings,
    build_tokens,
    choose_device,
    plan_batches,
    prepare_processor,
    refuse_nonfinite,
    refuse_word_model_options,
)
from felicity.engines.sources import (
    ModelDescription,
    ModelSource,
    count_values,
    limit_construction,
    load_private_tensors,
    read_tensors,
)
from felicity.engines.tokenizing import Encoded, Encoder
from felicity.engines.trained.folder import find_weights, read_training_record, read_vocabulary
from felicity.engines.trained.networks import LstmModel, TdlmModel
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.training import build_network
from felicity.engines.trained.training_data import pad
from felicity.engines.words import (
    TRAINED,
    UNKNOWN,
    VOCABULARY,
    ListedVocabulary,
    WordTokenizer,
    build_word_encoder,
    describe_word_model,
    encode_words,
    is_word_model,
    mark_boundaries,
)

# Positions projected onto the vocabulary at once, so that memory stays bounded.
SLICE_POSITIONS = 512
# Nats by which a sentence's sum may change with its batch in float32; a property test checks it.
NOISE = 1e-4
CHUNK = 8192


def score_recurrent_batch(
    model: LstmModel | TdlmModel,
    encoded: Encoded,
    sequences: np.ndarray,
    documents: list[np.ndarray],
    scorer: TokenScorer,
) -> np.ndarray:
    """Records of the wanted tokens of these sequences, flat, in their order.

    `documents` are content words, one array per sequence; an LSTM takes none.
    """
    spans = [slice(encoded.bounds[i], encoded.bounds[i + 1]) for i in sequences]
    ids = pad([encoded.ids[span] for span in spans]).ids
    rows, columns = np.nonzero(pad([encoded.wanted[span] for span in spans]).ids)
    targets = ids[rows, columns]
    records = np.empty(len(rows), dtype=scorer.record)
    with torch.inference_mode():
        device = next(model.parameters()).device
        hidden, _ = model.read(
            torch.from_numpy(ids).to(device), None, _topic_vectors(model, documents, device)
        )
        for begin in range(0, len(rows), SLICE_POSITIONS):
            part = slice(begin, begin + SLICE_POSITIONS)
            before = hidden[torch.from_numpy(rows[part]), torch.from_numpy(columns[part] - 1)]
            records[part] = scorer.score(model.predict(before), np.arange(len(before)), targets[part])
    return records


def predict_next(model: LstmModel | TdlmModel, histories: list[np.ndarray]) -> np.ndarray:
    """Nats over the vocabulary after each history, one row each; a TDLM reads no document."""
    padded = pad(histories)
    with torch.inference_mode():
        device = next(model.parameters()).device
        hidden, _ = model.read(torch.from_numpy(padded.ids).to(device), None)
        last = hidden[torch.arange(len(histories)), torch.from_numpy(padded.lengths - 1)]
        return torch.log_softmax(model.predict(last).float(), dim=-1).cpu().numpy()


def _topic_vectors(
    model: LstmModel | TdlmModel, documents: list[np.ndarray], device: torch.device
) -> torch.Tensor | None:
    if not isinstance(model, TdlmModel):
        return None
    padded = pad(documents)
    ids = torch.from_numpy(padded.ids).to(device)
    return model.topic.read(ids, torch.from_numpy(padded.lengths).to(device))


class TrainedEngine:
    """Scores with a model of `felicity train`; weights are loaded at the first call that needs them."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        compute: Compute | None = None,
    ) -> None:
        self._source = source
        self._description = description
        self._policy = policy
        self._compute = compute or Compute()
        refuse_word_model_options(self._compute, models="LSTM and TDLM")

    @cached_property
    def settings(self) -> TrainingSettings:
        """What the model was trained with."""
        return read_training_record(self._source.folder).settings

    @cached_property
    def encoder(self) -> Encoder:
        """The words of the model under the policy."""
        tokenizer = load_trained_tokenizer(self._source.folder)
        return build_word_encoder(tokenizer, self._policy, name=self._source.name)

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode."""
        prepare_processor()
        with self._source.files.reading():
            return load_trained(self._source.folder, device=choose_device(self._compute.device))

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and its settings, without its weights."""
        folder, files = self._source.folder, self._source.files
        info = describe_word_model(
            self.encoder,
            name=self._source.name,
            family=self.settings.family,
            weights=files.digest(find_weights(folder)),
            vocabulary=files.digest(folder / VOCABULARY),
            parameters=self._description.parameters,
            noise=NOISE,
            can=("score", "more", "boundary", "fill", "generate"),
            notes=self._source.details | self._notes(),
        )
        files.confirm()
        return info

    def refuse_changed(self) -> None:
        """Check that the files are still those of `info`.

        Raises BadInput.
        """
        self._source.files.refuse_changed()

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the vocabulary alone."""
        parts = []
        for chunk in prompts.iter_slices(CHUNK):
            encoded, documents = self._encode(chunk)
            rows = build_encodings(encoded, self.encoder.tokenizer, window=self.encoder.window)
            if self.settings.topic:
                given = pl.Series("n_context", [len(words) for words in documents], dtype=pl.Int64)
                rows = rows.with_columns(given)
            parts.append(rows)
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, one frame per finished batch; batches that are wholly in `done` are skipped."""

        scorer = TokenScorer(replace(extras, boundary=False))
        for chunk in prompts.iter_slices(CHUNK):
            encoded, documents = self._encode(chunk)
            finished = np.array([request in done for request in encoded.request], dtype=bool)
            for batch in plan_batches(encoded.lengths, budget=BATCH_TOKENS):
                if finished[batch].all():
                    continue
                records = score_recurrent_batch(
                    self.model, encoded, batch, [documents[i] for i in batch], scorer
                )
                refuse_nonfinite(records["logprob"], name=self._source.name)
                tokens = build_tokens(encoded, batch, records, self.encoder.tokenizer)
                yield mark_boundaries(tokens, extras)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable words after the text before each frame's blank."""
        predict = partial(predict_next, self.model)
        return fill_words(self.encoder, frames, k=k, name=self._source.name, predict=predict)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate | the text before the blank)."""
        return score_next(self, frames, candidates, unknown=UNKNOWN, name=self._source.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt continued word by word."""
        predict = partial(predict_next, self.model)
        return continue_words(
            self.encoder, prompts, sampling=sampling, name=self._source.name, predict=predict
        )

    def _encode(self, prompts: pl.DataFrame) -> tuple[Encoded, list[np.ndarray]]:
        """The sequences to score, and for TDLM the content words of each document."""
        name = self._source.name
        if not self.settings.topic:
            nothing = np.zeros(0, dtype=np.int64)
            return encode_words(self.encoder, prompts, name=name), [nothing] * len(prompts)
        alone = prompts.with_columns(pl.lit(None, dtype=pl.String).alias("context_text"))
        contexts = [self.encoder.cased(text) for text in prompts["context_text"].fill_null("").to_list()]
        context_ids = self.encoder.tokenizer(contexts)["input_ids"]
        words = (np.array(ids, dtype=np.int64) for ids in context_ids)
        longest = self.settings.topic.document
        documents = [ids[self._content[ids]][:longest] for ids in words]
        return encode_words(self.encoder, alone, name=name), documents

    @cached_property
    def _content(self) -> np.ndarray:
        return read_vocabulary(self._source.folder).content

    def _notes(self) -> dict[str, Any]:
        notes: dict[str, Any] = {"words": self.settings.cut}
        if self.settings.topic:
            notes["context"] = f"a document: its first {self.settings.topic.document} content words"
        return notes


def load_trained_tokenizer(folder: Path) -> WordTokenizer:
    """The words of a trained model.

    Raises BadInput if the files are damaged.
    """
    settings = read_training_record(folder).settings
    words = ListedVocabulary(read_vocabulary(folder).words)
    return WordTokenizer(words, splitting=settings.cut, lower=settings.casing == "lower")


def describe_trained(folder: Path) -> ModelDescription:
    """What a folder of `felicity train` contains, from its record and the header of its weights."""
    weights = find_weights(folder)
    settings = read_training_record(folder).settings
    tensors = read_tensors(weights)
    return ModelDescription(
        architecture=settings.family,
        model_type=settings.family,
        parameters=count_values(tensors),
        window=None,
        vocabulary=len(read_vocabulary(folder)),
        dtype="F32",
        size=weights.stat().st_size,
    )


def load_trained(folder: Path, *, device: str) -> LstmModel | TdlmModel:
    """The model in evaluation mode.

    Raises BadInput if the weights are damaged or belong to another model.
    """
    path = find_weights(folder)
    settings, table = read_training_record(folder).settings, read_vocabulary(folder)
    try:
        # Without memory for weights until those of the file are known to fit.
        tensors = read_tensors(path)
        with (
            limit_construction(len(tensors), count_values(tensors), folder / TRAINED),
            torch.device("meta"),
        ):
            model = build_network(len(table), settings)
        model.load_state_dict(load_private_tensors(path), assign=True)
    except (BadInput, OSError, RuntimeError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path} is damaged or does not match its vocabulary; train the model again."
        ) from error
    return model.to(device).eval()


def list_topics(folder: Path, *, k: int = 10) -> list[list[tuple[str, float]]]:
    """For each topic its `k` most probable content words and their probabilities.

    Raises NotPossible if the model has no topics.
    """
    if not folder.is_dir() or not is_word_model(folder) or not read_training_record(folder).settings.topic:
        raise NotPossible(
            f"{folder} has no topics; give the folder of a model trained with `felicity train tdlm`."
        )
    if k < 1:
        raise FelicityError("-k must be at least 1.")
    import torch

    from felicity.engines.trained.networks import TdlmModel

    model, table = load_trained(folder, device="cpu"), read_vocabulary(folder)
    if not isinstance(model, TdlmModel):
        raise NotPossible(
            f"{folder} has no topics; give the folder of a model trained with `felicity train tdlm`."
        )
    with torch.inference_mode():
        probability = torch.softmax(model.topic.topics(), dim=1).numpy()
    telling = np.flatnonzero(table.content)
    best = telling[np.argsort(-probability[:, telling], axis=1, kind="stable")[:, :k]]
    return [
        [(table.words[place], float(probability[topic, place])) for place in places]
        for topic, places in enumerate(best.tolist())
    ]
