"""A model as a person uses it: texts in, frames out, what was scored before not scored again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import polars as pl

from felicity.core.engine import (
    NOTHING_MORE,
    Engine,
    EngineInfo,
    Filler,
    Generator,
    More,
    Sampling,
)
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import PROMPTS
from felicity.engines.devices import Compute
from felicity.engines.families import open_engine
from felicity.engines.served.settings import Serving
from felicity.measures.words import find_words, sum_spans
from felicity.run.precision import EXACT
from felicity.run.ray_pool import Workers, pool_engine
from felicity.run.scoring import Progress, fill_missing, find_missing, read_tokens, score_missing
from felicity.run.store import ScoreStore


class Model:
    """An engine with its store of scores."""

    def __init__(
        self,
        engine: Engine,
        *,
        spec: str,
        cache: bool = True,
        open_exact: Callable[[], "Model"] | None = None,
    ) -> None:
        self.engine = engine
        self.spec = spec
        self._open_exact = open_exact
        self.store = ScoreStore.shared(engine.info) if cache else ScoreStore(None, engine.info)

    @property
    def info(self) -> EngineInfo:
        """What the model is and how it is asked: family, window, policy, fingerprints."""
        return self.engine.info

    @cached_property
    def exact(self) -> "Model":
        """The same model in float32, whose verdicts a run in half precision must reach."""
        return self._open_exact() if self._open_exact else self

    def score(
        self, texts: str | Sequence[str], *, context: str | Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Log-probability of each text, in nats, and its tokens: columns text, lp, n_tokens.

        `context` stands before each text (one for all, or one each) and is not scored itself.

        >>> import felicity as fe
        >>> lm = fe.model("smollm2")
        >>> scores = lm.score(["The cats annoy Tim.", "The cats annoys Tim."])
        >>> scores["lp"][0] > scores["lp"][1]
        True
        """
        tokens = self.tokens(texts, context=context)
        return tokens.select(
            "text",
            pl.col("logprob").list.eval(pl.element().cast(pl.Float64)).list.sum().alias("lp"),
            pl.col("tokens").list.len().alias("n_tokens"),
        )

    def tokens(
        self,
        texts: str | Sequence[str],
        *,
        context: str | Sequence[str] | None = None,
        rank: bool = False,
        entropy: bool = False,
        top: int = 0,
    ) -> pl.DataFrame:
        """Every token of each text with its log-probability: columns text, tokens, start, end, logprob.

        Offsets count characters of the text; a token that could not be scored has null. On demand
        also, in columns of these names, each token's rank in the vocabulary, the entropy of the
        prediction in nats, and the `top` likeliest tokens (top_tokens, top_logprob).

        >>> import felicity as fe
        >>> fe.model("smollm2").tokens("Cats purr.")["tokens"].to_list()
        [['Cats', 'Ġpur', 'r', '.']]
        """
        prompts = build_prompts(texts, context)
        more = More(rank=rank, entropy=entropy, top=top)
        if more != NOTHING_MORE:
            return self._more_tokens(prompts, more).select(prompts["text"], pl.exclude("request", "text"))
        scored = self._kept_tokens(prompts)
        return scored.select(prompts["text"], "tokens", "start", "end", "logprob")

    def words(
        self,
        texts: str | Sequence[str],
        *,
        context: str | Sequence[str] | None = None,
        boundary: str = "corrected",
        regions: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> pl.DataFrame:
        """Log-probability of every word: columns text, place, word, start, end, lp, n_tokens.

        Words are what stands between white space, or the `regions` of each text by start and end
        character. `corrected` counts the end of a word to the word, `plain` sums its tokens; either
        way they sum to the text's lp. `text` and `place` number texts and words from 0.

        >>> import felicity as fe
        >>> fe.model("smollm2").words("Cats purr.")["word"].to_list()
        ['Cats', 'purr.']
        """
        prompts = build_prompts(texts, context)
        corrected = boundary == "corrected"
        tokens = self._more_tokens(prompts, More(boundary=True)) if corrected else self._kept_tokens(prompts)
        written = prompts["text"].to_list()
        spans = [find_words(text) for text in written] if regions is None else regions
        if len(spans) != len(written):
            raise BadInput(f"There are {len(written)} texts but regions of {len(spans)}; give one list each.")
        return sum_spans(tokens, written, spans, boundary=boundary)

    def fill(self, frames: str | Sequence[str], *, k: int = 10) -> pl.DataFrame:
        """The k likeliest words for the blank `___` of each frame, each a token decoded by itself.

        Columns frame, rank, filler, token, logprob, dropped; the last counts likelier tokens that are no
        text by themselves. A model that reads from left to right needs the blank at the end.

        >>> import felicity as fe
        >>> fe.model("smollm2").fill("The capital of France is ___.", k=1)["filler"].to_list()
        ['Paris']
        """
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least one word.")
        return self._filler().fill(as_list(frames, "frame"), k=k)

    def score_candidates(
        self, frames: str | Sequence[str], candidates: Sequence[str] | Sequence[Sequence[str]]
    ) -> pl.DataFrame:
        """Log-probability of given words in the blank of each frame, whatever their number of tokens.

        `candidates` are words for every frame, or a list of words for each. Columns frame, candidate,
        tokens, logprob.

        >>> import felicity as fe
        >>> scored = fe.model("smollm2").score_candidates("The capital of France is ___.", ["Paris", "Rome"])
        >>> scored["logprob"][0] > scored["logprob"][1]
        True
        """
        filler = self._filler()
        frames = as_list(frames, "frame")
        words = [[words] if isinstance(words, str) else list(words) for words in candidates]
        if candidates and isinstance(candidates[0], str):
            words = [[word for part in words for word in part]] * len(frames)
        if len(words) != len(frames):
            raise BadInput(f"There are {len(frames)} frames but {len(words)} lists of candidates.")
        return filler.score_candidates(frames, words)

    def generate(
        self,
        prompts: str | Sequence[str],
        *,
        tokens: int = 50,
        temperature: float = 0.0,
        top_p: float = 1.0,
        stop: Sequence[str] = (),
        samples: int = 1,
        seed: int = 0,
    ) -> pl.DataFrame:
        """Each prompt written on: the likeliest token each time, or drawn at a temperature above 0.

        Columns prompt, sample, continuation, n_tokens, ended. The same seed gives the same texts, whatever
        other prompts there are.

        >>> import felicity as fe
        >>> fe.model("smollm2").generate("The capital of France is", tokens=1)["continuation"].item()
        ' Paris'
        """
        if not isinstance(self.engine, Generator) or "generate" not in self.info.can:
            raise NotPossible(f"'{self.info.name}', of the family {self.info.family}, cannot write texts.")
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        sampling = Sampling(
            tokens=tokens, temperature=temperature, top_p=top_p, stop=stops, samples=samples, seed=seed
        )
        return self.engine.generate(as_list(prompts, "prompt"), sampling=sampling)

    def _kept_tokens(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """Tokens out of the store, scored into it where they are not there yet."""
        score_missing(self.engine, self.store, find_missing(self.store, prompts))
        return pl.concat(list(read_tokens(self.store, prompts)))

    def _more_tokens(self, prompts: pl.DataFrame, more: More) -> pl.DataFrame:
        """Tokens with further columns; these are not kept in the store."""
        if "more" not in self.info.can:
            raise NotPossible(f"'{self.info.name}' gives log-probabilities only.")
        more.check_top(self.info.vocabulary)
        scored = pl.concat(list(self.engine.score(prompts, more=more)))
        return prompts.select("request").join(scored, on="request", maintain_order="left")

    def score_all(self, pending: pl.DataFrame, *, progress: Progress | None = None) -> int:
        """Score prompts into the store, from where it stopped; how many texts that took."""
        return score_missing(self.engine, self.store, pending, progress=progress)

    def fill_all(self, frames: Sequence[str], *, k: int, progress: Progress | None = None) -> int:
        """The k likeliest words for each frame into the store, from where it stopped; how many that took."""
        return fill_missing(self._filler(), self.store, frames, k=k, progress=progress)

    def _filler(self) -> Filler:
        if not isinstance(self.engine, Filler) or "fill" not in self.info.can:
            raise NotPossible(f"'{self.info.name}', of the family {self.info.family}, cannot fill a blank.")
        return self.engine


def open_model(
    spec: str = "smollm2",
    *,
    policy: Policy | None = None,
    device: str = "auto",
    dtype: str = "float32",
    device_map: str | None = None,
    serving: Serving | None = None,
    workers: Workers | None = None,
    cache: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> Model:
    """A model by name, folder, hub name or .gguf file, or `openai:NAME` behind a server.

    `device`, `dtype` and `device_map` are as in transformers; a device map wins over the device.
    `serving` says where the server is and how it is asked. `workers` spreads scoring over a Ray cluster.

    >>> import felicity as fe
    >>> fe.model("smollm2").info.family
    'causal'
    """
    chosen = policy or Policy()
    compute = Compute(device=device, dtype=dtype, device_map=device_map)

    def open_one(compute: Compute, progress: Callable[[str, int, int], None] | None = None) -> Engine:
        engine = open_engine(spec, policy=chosen, compute=compute, serving=serving, progress=progress)
        if workers is None:
            return engine
        return pool_engine(engine, spec, policy=chosen, compute=compute, workers=workers)

    def open_exact() -> Model:
        return Model(open_one(replace(compute, dtype=EXACT)), spec=spec, cache=cache)

    engine = open_one(compute, progress)
    return Model(engine, spec=spec, cache=cache, open_exact=None if dtype == EXACT else open_exact)


def as_list(texts: str | Sequence[str], what: str) -> list[str]:
    """One text or several, as a list.

    Raises BadInput where there is none or one is not a string.
    """
    found = [texts] if isinstance(texts, str) else list(texts)
    if not found:
        raise BadInput(f"There is no {what}; give at least one.")
    for place, text in enumerate(found):
        if not isinstance(text, str):
            raise BadInput(f"The {what} at place {place + 1} is {text!r}; give a text.")
    return found


def build_prompts(texts: str | Sequence[str], context: str | Sequence[str] | None) -> pl.DataFrame:
    """Texts, and one context for all or one each, as an engine takes them.

    Raises BadInput where a text is not a string or the contexts are too few or too many.
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    contexts = [context] * len(texts) if context is None or isinstance(context, str) else list(context)
    if not texts:
        raise BadInput("There is no text to score; give at least one.")
    if len(contexts) != len(texts):
        raise BadInput(
            f"There are {len(texts)} texts but {len(contexts)} contexts; give one for all or one each."
        )
    for place, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"Text {place + 1} is {text!r}; give a sentence.")
    names = [f"text {place + 1}" for place in range(len(texts))]
    return pl.DataFrame({"request": names, "context_text": contexts, "text": texts}, schema=PROMPTS)
