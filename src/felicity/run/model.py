"""The public face of a model: texts in, frames out, with scores cached."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import polars as pl

from felicity.core.engine import (
    NO_EXTRAS,
    Engine,
    EngineInfo,
    Filler,
    Generator,
    Sampling,
    TokenExtras,
    refuse_changed,
)
from felicity.core.errors import BadInput, NotPossible
from felicity.core.frames import Frame
from felicity.core.policy import Policy
from felicity.core.progress import Progress, no_progress
from felicity.core.wording import decimal
from felicity.engines import open_engine
from felicity.engines.runtime import WIDE, Compute, DtypeChoice, choose_dtype, parse_frame
from felicity.engines.served import Serving, is_served
from felicity.engines.tokenizing import BEGIN_NOTE
from felicity.measures import CORRECTED, choose_boundary, find_words, sum_spans
from felicity.run.precision import EXACT
from felicity.run.prompts import as_list, take_input
from felicity.run.ray_pool import Workers, pool_engine
from felicity.run.scoring import (
    SCORING,
    BoundedEngine,
    continue_missing,
    fill_missing,
    find_missing,
    read_fillers,
    read_tokens,
    score_missing,
)
from felicity.run.sliding import score_sliding, slides
from felicity.run.store import ScoreStore

# Families whose sums of many products are rounded in float32. A sentence of SmolLM2 was off by up to 4.5e-3
# nats, most by less than 1e-4; whatever is closer than twice POSSIBLE_ERROR is measured before it is called
# stable.
ROUNDED = ("causal", "masked", "seq2seq", "xlnet")
POSSIBLE_ERROR = 1e-2
# Parameters of the largest model that is loaded a second time, in float64.
LARGEST_WIDE = 1_500_000_000


class Model:
    """An engine with its score cache."""

    def __init__(
        self,
        engine: Engine,
        *,
        spec: str,
        cache: bool = True,
        open_float32: Callable[[], "Model"] | None = None,
        open_half: Callable[[], "Model"] | None = None,
        open_float64: Callable[[], "Model"] | None = None,
        dtype: DtypeChoice | None = None,
    ) -> None:
        self.engine = engine
        self.spec = spec
        self.dtype = dtype
        self._open_float32 = open_float32
        self._open_half = open_half
        self._open_float64 = open_float64
        self.store = ScoreStore.shared(engine.info) if cache else ScoreStore(None, engine.info)

    def __repr__(self) -> str:
        """The model in a line: name, family, size, precision, and the begin token of its policy.

        >>> import felicity as fe
        >>> repr(fe.model("smollm2")).startswith("Model(smollm2: causal, 134.5M parameters, float32, window ")
        True
        """
        info = self.info
        size = f"{decimal(info.parameters / 1e6, 1)}M parameters, " if info.parameters else ""
        window = "no window" if info.window is None else f"window {info.window}"
        begin = f"begin token {info.policy.get('bos', 'none')}"
        return f"Model({info.name}: {info.family}, {size}{info.dtype}, {window}, {begin})"

    @property
    def info(self) -> EngineInfo:
        """What the model is and its settings: family, window, policy, fingerprints."""
        return self.engine.info

    @property
    def boundary(self) -> str:
        """How the tokens of a word or region are summed unless something else is asked for.

        `corrected` where the model gives the probability that a word ends, else `plain`.
        """
        return choose_boundary("auto", self.info)

    @cached_property
    def bounded(self) -> "Model":
        """The same model, whose tokens also have the log-probability of a word boundary."""
        bounded = copy(self)
        bounded.__dict__.pop("in_float32", None)
        bounded.engine = BoundedEngine(self.engine)
        bounded.store = self.store.with_boundaries()
        return bounded

    @cached_property
    def in_float32(self) -> "Model":
        """The same model in float32, whose judgements a run in half precision must match."""
        return self._open_float32() if self._open_float32 else self

    @cached_property
    def in_float64(self) -> "Model | None":
        """The same model in float64, which shows the rounding errors of this one; None if it is too large.

        Models of words, which sum few numbers, and served models have none.
        """
        small = self.info.parameters <= LARGEST_WIDE
        if self._open_float64 is None or self.info.family not in ROUNDED or not small:
            return None
        try:
            return self._open_float64()
        except NotPossible:
            return None

    @property
    def possible_error(self) -> float:
        """Nats by which the log-probability of any sentence may be wrong."""
        rounded = self.info.family in ROUNDED and self.info.dtype == EXACT
        return max(self.info.noise, POSSIBLE_ERROR) if rounded else self.info.noise

    def measure_errors(self, prompts: pl.DataFrame) -> dict[str, float]:
        """By how many nats the sums of these prompts may be wrong: their distance from float64's.

        Empty if there is no model in float64 to compare with.
        """
        if self.in_float64 is None or prompts.is_empty():
            return {}
        mine, theirs = (model._sum(prompts) for model in (self, self.in_float64))
        return {name: abs(mine[name] - theirs[name]) + self.in_float64.info.noise for name in mine}

    def _sum(self, prompts: pl.DataFrame) -> dict[str, float]:
        tokens = self._kept_tokens(prompts)
        total = pl.col("logprob").list.eval(pl.element().cast(pl.Float64)).list.sum()
        return dict(tokens.select("request", total).iter_rows())

    def choose_precision(self, *, exact: bool) -> "Model":
        """The model to carry a run out with: with `--dtype auto`, half precision where it saves time.

        exact: whether the run promises more than verdicts, for which only float32 will do.
        """
        if self._open_half is None or self.dtype is None:
            return self
        why = "this rule's judgements depend on more than one margin" if exact else ""
        try:
            half = None if exact else self._half
        except NotPossible as error:
            half, why = None, str(error)
        if half is not None:
            return half
        self.dtype = replace(self.dtype, taken=EXACT, why=why)
        self._open_half = None
        return self

    @cached_property
    def _half(self) -> "Model | None":
        """The same model in half precision; this one scores its close calls again."""
        if self._open_half is None:
            return None
        half = self._open_half()
        half.dtype = self.dtype
        half.in_float32 = self
        return half

    def score(
        self,
        texts: str | Sequence[str] | Frame,
        *,
        context: str | Sequence[str] | None = None,
        column: str | None = None,
    ) -> pl.DataFrame:
        """Log-probability of each text, in nats, and its scored tokens: columns text, lp, n_tokens.

        `context` precedes each text (one for all, or one each) and is not scored itself. Of a polars or
        pandas frame the texts are in `column` (by default `text`, or the only column of texts), `context` may
        name a column too, and the result keeps all columns.

        >>> import felicity as fe
        >>> lm = fe.model("smollm2")
        >>> scores = lm.score(["The cats annoy Tim.", "The cats annoys Tim."])
        >>> scores["lp"][0] > scores["lp"][1]
        True
        """
        given = take_input(texts, context, column)
        found = self._kept_tokens(given.prompts).select(
            pl.col("logprob").list.eval(pl.element().cast(pl.Float64)).list.sum().alias("lp"),
            pl.col("logprob").list.drop_nulls().list.len().cast(pl.Int64).alias("n_tokens"),
        )
        return given.beside(found)

    def tokens(
        self,
        texts: str | Sequence[str] | Frame,
        *,
        context: str | Sequence[str] | None = None,
        column: str | None = None,
        rank: bool = False,
        entropy: bool = False,
        top: int = 0,
    ) -> pl.DataFrame:
        """Every token of each text with its log-probability: columns text, tokens, start, end, logprob.

        Offsets are characters of the text; a token that could not be scored has null. On request
        also, in columns of these names: each token's rank in the vocabulary, the entropy of the
        prediction in nats, and the `top` most probable tokens (top_tokens, top_logprob). Frames are taken as
        by `score`.

        >>> import felicity as fe
        >>> fe.model("smollm2").tokens("Cats purr.")["tokens"].to_list()
        [['Cats', 'Ġpur', 'r', '.']]
        """
        given = take_input(texts, context, column)
        extras = TokenExtras(rank=rank, entropy=entropy, top=top)
        kept = extras == NO_EXTRAS
        found = self._kept_tokens(given.prompts) if kept else self._tokens_with_extras(given.prompts, extras)
        return given.beside(found.drop("request"))

    def words(
        self,
        texts: str | Sequence[str] | Frame,
        *,
        context: str | Sequence[str] | None = None,
        column: str | None = None,
        boundary: str = "auto",
        regions: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> pl.DataFrame:
        """Log-probability of every word: columns row, text, place, word, start, end, lp, n_tokens.

        Words are separated by white space, or are the `regions` of each text by start and end
        character. `corrected`, the default where the model can, includes the end of a word in the word,
        `plain` sums its tokens; either way they sum to the text's lp. `row` and `place` number texts and
        words from 1. Frames are taken as by `score`.

        Raises BadInput for a script without spaces, unless its `regions` are given.

        >>> import felicity as fe
        >>> fe.model("smollm2").words("Cats purr.")["word"].to_list()
        ['Cats', 'purr.']
        """
        given = take_input(texts, context, column)
        chosen = choose_boundary(boundary, self.info)
        written = given.prompts["text"].to_list()
        spans = [find_words(text) for text in written] if regions is None else regions
        if len(spans) != len(written):
            raise BadInput(
                f"There are {len(written)} texts but regions for {len(spans)}; give one list per text."
            )
        reader = self.bounded if chosen == CORRECTED else self
        return given.each(sum_spans(reader._kept_tokens(given.prompts), written, spans, boundary=chosen))

    def fill(self, frames: str | Sequence[str], *, k: int = 10) -> pl.DataFrame:
        """The k most probable words for the blank `___` of each frame, each a token decoded alone.

        Columns frame, rank, filler, token, logprob, dropped; the last counts more probable tokens that are
        not text by themselves. A left-to-right model needs the blank at the end.

        >>> import felicity as fe
        >>> fe.model("smollm2").fill("The capital of France is ___.", k=1)["filler"].to_list()
        ['Paris']
        """
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1.")
        filler, texts = self._filler(), as_list(frames, "frame")
        for text in texts:
            parse_frame(text)
        return self._verified(filler.fill(texts, k=k))

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
        return self._verified(filler.score_candidates(frames, words))

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
        whole: int | None = None,
        beams: int = 1,
    ) -> pl.DataFrame:
        """Each prompt continued: with the most probable token each time, or sampled at a temperature above 0.

        Columns prompt, sample, continuation, n_tokens, ended. The same seed gives the same texts, regardless
        of the other prompts. `whole` is the most tokens of a prompt and its continuation together; `beams`
        searches for the most probable text with that many beams.

        >>> import felicity as fe
        >>> fe.model("smollm2").generate("The capital of France is", tokens=1)["continuation"].item()
        ' Paris'
        """
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        sampling = Sampling(
            tokens=tokens,
            temperature=temperature,
            top_p=top_p,
            stop=stops,
            samples=samples,
            seed=seed,
            whole=whole,
            beams=beams,
        )
        return self._verified(self._generator().generate(as_list(prompts, "prompt"), sampling=sampling))

    def generate_all(
        self, prompts: Sequence[str], *, sampling: Sampling, progress: Progress | None = None
    ) -> pl.DataFrame:
        """Rows of CONTINUATIONS, from the cache if they are there; each batch is stored before the next."""
        return continue_missing(
            self._generator(), self.store, prompts, sampling=sampling, progress=progress or no_progress
        )

    def _kept_tokens(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """Tokens from the cache, scored first if they are missing; over-long texts as the policy says."""
        if slides(self.info):
            return score_sliding(self.engine, prompts, self._fitting_tokens)
        return self._fitting_tokens(prompts)

    def _fitting_tokens(self, prompts: pl.DataFrame) -> pl.DataFrame:
        score_missing(self.engine, self.store, find_missing(self.store, prompts))
        return pl.concat(list(self.read(prompts)))

    def _tokens_with_extras(self, prompts: pl.DataFrame, extras: TokenExtras) -> pl.DataFrame:
        """Tokens with extra columns, which are not cached."""
        if "more" not in self.info.can:
            raise NotPossible(f"'{self.info.name}' gives log-probabilities only; omit rank, entropy and top.")
        extras.check_top(self.info.vocabulary)

        def score(fitting: pl.DataFrame) -> pl.DataFrame:
            scored = self._verified(pl.concat(list(self.engine.score(fitting, extras=extras))))
            return fitting.select("request").join(scored, on="request", maintain_order="left")

        return score_sliding(self.engine, prompts, score) if slides(self.info) else score(prompts)

    def score_all(
        self, pending: pl.DataFrame, *, step: str = SCORING, progress: Progress | None = None
    ) -> int:
        """Score the prompts that are not in the cache; returns how many texts were scored."""
        return score_missing(self.engine, self.store, pending, step=step, progress=progress or no_progress)

    def read(self, prompts: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS for prompts that were scored, in order, part by part."""
        return read_tokens(self.engine, self.store, prompts)

    def read_fillers(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS for frames that were filled, in order."""
        return read_fillers(self._filler(), self.store, frames, k=k)

    def fill_all(self, frames: Sequence[str], *, k: int, progress: Progress | None = None) -> int:
        """Fill the frames that are not in the cache; returns how many frames were filled."""
        return fill_missing(self._filler(), self.store, frames, k=k, progress=progress or no_progress)

    def _verified(self, computed: pl.DataFrame) -> pl.DataFrame:
        """What was just computed, if the model is still that of the key.

        Raises FelicityError.
        """
        refuse_changed(self.engine)
        return computed

    def _generator(self) -> Generator:
        if not isinstance(self.engine, Generator) or "generate" not in self.info.can:
            raise NotPossible(f"'{self.info.name}', of the family {self.info.family}, cannot continue texts.")
        return self.engine

    def _filler(self) -> Filler:
        if not isinstance(self.engine, Filler) or "fill" not in self.info.can:
            raise NotPossible(f"'{self.info.name}', of the family {self.info.family}, cannot fill a blank.")
        return self.engine


def open_model(
    spec: str | Path = "smollm2",
    *,
    policy: Policy | None = None,
    device: str = "auto",
    dtype: str = "float32",
    device_map: str | None = None,
    serving: Serving | None = None,
    workers: Workers | None = None,
    cache: bool = True,
    allow_code: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """A model by name, folder, hub name or .gguf file, or `openai:NAME` for a served model.

    `device`, `dtype` and `device_map` are as in transformers; a device map overrides the device. With
    dtype `auto` the model is in float32, and runs that compare conditions are scored in half precision
    if that is faster on this machine, with the judgements of float32.
    `serving` has the settings of the server. `workers` distributes scoring over a Ray cluster. `allow_code`
    names the version of the Python code that comes with a model and may be run.

    >>> import felicity as fe
    >>> fe.model("smollm2").info.family
    'causal'
    """
    if isinstance(spec, Path):
        spec = str(spec)
    if not isinstance(spec, str):
        raise BadInput(f"The model is {spec!r}; give a name, a folder or a file, such as 'smollm2'.")
    if policy is not None and not isinstance(policy, Policy):
        raise BadInput(
            f"The policy is {policy!r}; give a felicity.Policy, such as felicity.Policy(bos='none')."
        )
    chosen = policy or Policy()
    choice = choose_dtype(EXACT if is_served(spec) else dtype, device)
    compute = Compute(
        device=device,
        dtype=EXACT if dtype == "auto" else dtype,
        device_map=device_map,
        allow_code=allow_code,
    )

    def open_one(compute: Compute, policy: Policy, progress: Progress | None = None) -> Engine:
        engine = open_engine(spec, policy=policy, compute=compute, serving=serving, progress=progress)
        if workers is None:
            return engine
        policy = settle_begin(policy, engine.info)
        return pool_engine(engine, spec, policy=policy, compute=compute, workers=workers)

    def open_in(dtype: str) -> Model:
        again = open_one(replace(compute, dtype=dtype), settle_begin(chosen, engine.info))
        if (again.info.weights, again.info.tokenizer) != (engine.info.weights, engine.info.tokenizer):
            raise BadInput(
                f"The files of '{engine.info.name}' were changed while it was in use; run the command again "
                "when no program writes to them."
            )
        return Model(again, spec=spec, cache=cache)

    auto = choice.asked == "auto"
    engine = open_one(compute, chosen, progress)
    return Model(
        engine,
        spec=spec,
        cache=cache,
        open_float32=None if compute.dtype == EXACT else partial(open_in, EXACT),
        open_half=partial(open_in, choice.taken) if auto and choice.taken != EXACT else None,
        open_float64=partial(open_in, WIDE)
        if compute.dtype == EXACT and not (workers or device_map)
        else None,
        dtype=None if choice.asked == EXACT else choice,
    )


def settle_begin(policy: Policy, info: EngineInfo) -> Policy:
    """The policy with a begin token that was measured, so that workers and other precisions use it too."""
    return policy.replace(bos=info.policy["bos"]) if BEGIN_NOTE in info.notes else policy
