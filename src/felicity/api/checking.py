"""What is wrong with stimuli before anything is scored: files, names, frames, and folders of extensions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from felicity.api.check_result import FINDINGS, Checked
from felicity.api.pairs import open_counters
from felicity.api.scoring import take_model
from felicity.core.errors import BadInput, UnknownName
from felicity.core.frames import Frame
from felicity.data import (
    ALL_LANGUAGES,
    PROBLEMS,
    CheckedFile,
    Columns,
    Dataset,
    Table,
    check_file,
    check_items,
    check_table,
    find_frequency,
    load_entries,
    read_dataset,
    read_table,
    tabulate_frame,
)
from felicity.design import build_requests
from felicity.run import RULES as JUDGING
from felicity.run import Baselines, Model, infer_language, measure_baselines
from felicity.stimuli import Pair, read_sentence_pairs
from felicity.stimuli.checks import (
    PAIR_RULES,
    SENTENCE_RULES,
    Finding,
    Knowledge,
    MinimalPair,
    check_minimal_pairs,
    check_sentences,
    check_swaps,
    find_faults,
    fold_findings,
    open_knowledge,
)
from felicity.stimuli.extension import (
    FORMS,
    RULES,
    Extension,
    RuleInput,
    Seen,
    check_set,
    guess_form,
    skipped_rules,
)
from felicity.stimuli.review import replay_log, verify_log
from felicity.studies.acceptability import check_ratings, has_single_ratings

# A 5-gram prefers one of two sentences by some nats for one rare word.
FAR_FOR_NGRAM = 10.0
SERVED = "openai:"
LINE = re.compile(r"(?:on )?line (\d+)$")
LOG, DATASET = "log.jsonl", "dataset.parquet"
REPEATED_SENTENCE = "repeated sentence"
# What the rules for pairs of cloze sentences do not find themselves.
OF_CLOZE = ("article before a mass noun", "wrong participle", "denied category")
# What a check of a file finds before any rule.
OF_FILES = (
    "empty cell", "stray space", "identical texts", "duplicate item", "reversed pair", "cannot be used",
    "region bars", "curly quotes", "missing full stop", "mixed scripts",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Options:
    """What is asked of a check besides its data."""

    model: str | Path | Model | None = None
    tokenizers: tuple[str, ...] = ()
    corpus: Path | None = None
    form: str | None = None


def check(
    data: str | Path | Frame,
    *,
    columns: Columns | None = None,
    source: str | Path | None = None,
    model: str | Path | Model | None = None,
    tokenizers: str | Sequence[str] = (),
    corpus: str | Path | None = None,
    form: str | None = None,
    rules: str | Sequence[str] = (),
    last: str | None = None,
) -> Checked:
    """What is wrong with stimuli, before anything is scored.

    data: a dataset's name, a file, a polars or pandas frame, a list of seed sentences (.txt), or the folder
    of an extension, whose log is verified. source: a folder with a copy of the dataset. model: says which bad
    sentences it finds far more probable, and which pairs are of unequal token length. tokenizers: the latter
    only. corpus: a text for the 5-gram. form: how cloze pairs are built: negation or role. rules: only what
    these find. last: a hash noted earlier, which must be in the log.

    Raises BadInput or UnknownName if the data cannot be read at all.

    >>> import felicity as fe
    >>> import polars as pl
    >>> frame = pl.DataFrame({"good": ["He saw a owl."], "bad": ["Him saw a owl."]})
    >>> fe.check(frame).findings["rule"].to_list()
    ['wrong article']
    """
    rules = [rules] if isinstance(rules, str) else list(rules)
    known = [*OF_FILES, *SENTENCE_RULES, *PAIR_RULES, *RULES, REPEATED_SENTENCE]
    for name in rules:
        if name not in known:
            raise UnknownName("rule", name, list(dict.fromkeys(known)))
    options = _Options(
        model=model,
        tokenizers=(tokenizers,) if isinstance(tokenizers, str) else tuple(tokenizers),
        corpus=Path(corpus) if corpus is not None else None,
        form=form,
    )
    columns = columns or Columns()
    columns = replace(columns, language=columns.language or ALL_LANGUAGES)
    if last is not None and not _is_extension(data):
        raise BadInput("--last is a hash of the log of an extension; give its folder, or omit --last.")
    if _is_extension(data):
        found = _check_extension(Path(data), options, last)
    elif not isinstance(data, str | Path):
        found = _check_rows(tabulate_frame(data), columns, options)
    elif Path(data).suffix == ".txt":
        found = _check_pairs(Path(data).name, read_sentence_pairs(Path(data)), options)
    elif str(data) in _names():
        found = _check_named(str(data), columns, Path(source) if source else None, options)
    else:
        found = _check_path(Path(data), columns, options)
    return _keep_rules(found, rules) if rules else found


def _names() -> list[str]:
    return [*load_entries(), "starter"]


def _is_extension(data: object) -> bool:
    return (
        isinstance(data, str | Path)
        and str(data) not in _names()
        and (Path(data).is_dir() or Path(data).name == LOG)
    )


def _keep_rules(found: Checked, rules: Sequence[str]) -> Checked:
    return replace(
        found,
        problems=found.problems.filter(pl.col("problem").is_in(rules)),
        findings=found.findings.filter(pl.col("rule").is_in(rules)),
    )


def _check_extension(path: Path, options: _Options, last: str | None) -> Checked:
    """The log of an extension, and the pairs that were accepted or, before a review, proposed."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and not (path / LOG).exists():
        raise BadInput(
            f"{path} is a folder without {LOG}; give a file of stimuli, or what `felicity stimuli extend` "
            "made."
        )
    verdict = verify_log(folder / LOG if path.is_dir() else path, last=last)
    if not verdict.whole or not path.is_dir():
        return Checked(name=str(path), items=0, rows=0, log=verdict)
    if (folder / DATASET).exists():
        pairs = read_sentence_pairs(folder / DATASET)
    else:
        proposals = replay_log(Extension(folder).log.read()).proposals.values()
        pairs = [Pair(one.item, *one.texts) for one in proposals]
    return replace(_check_pairs(str(path), pairs, options), log=verdict)


def _check_named(name: str, columns: Columns, folder: Path | None, options: _Options) -> Checked:
    """A dataset of the catalogue; what would be a problem of one's own file is a finding here."""
    entry = load_entries().get(name)
    cloze = entry is not None and "cloze" in entry.methods
    dataset = read_dataset(name, columns, folder=folder, rule="cloze" if cloze else None)
    items = dataset.items
    whole = CheckedFile(
        items=items["item"].n_unique(),
        rows=len(items),
        problems=pl.DataFrame(schema=PROBLEMS),
        dataset=dataset,
    )
    found = _apply_rules(name, whole, options)
    # Without lines the rows are numbered, which says of which items each problem is.
    names = items["item"].to_list()
    told = [
        (
            None,
            names[row["line"] - 1],
            row["problem"],
            LINE.sub(lambda place: names[int(place[1]) - 1], row["detail"]),
        )
        for row in check_items(items.drop("line", strict=False)).iter_rows(named=True)
    ]
    return replace(
        found, findings=pl.concat([pl.DataFrame(told, schema=FINDINGS, orient="row"), found.findings])
    )


def _check_path(path: Path, columns: Columns, options: _Options) -> Checked:
    if has_single_ratings(path):
        return _check_rows(read_table(path), columns, options)
    return _apply_rules(str(path), check_file(path, columns), options)


def _check_rows(table: Table, columns: Columns, options: _Options) -> Checked:
    """A table, from a file or a frame, as its reader takes it."""
    name = str(table.path)
    if not has_single_ratings(table):
        return _apply_rules(name, check_table(table, columns), options)
    labels = [label for label in (columns.suite, columns.phenomenon) if label]
    found = check_ratings(table, labels=labels)
    texts = {str(row["text"]): [str(row["text"])] for row in table.rows if str(row.get("text") or "").strip()}
    return _describe(name, found, *_check_texts(texts, _choose_knowledge(list(texts), None)))


def _apply_rules(name: str, found: CheckedFile, options: _Options) -> Checked:
    """What the rules find in the stimuli of a file, by the kind of stimuli that they are."""
    dataset = found.dataset
    if dataset is None or dataset.items.is_empty():
        note = "The rules for sentences were not applied, because the stimuli cannot be read as they are."
        return _describe(name, found, [], [note])
    if dataset.rule == "cloze" and len(dataset.change) == 2:
        return _describe(name, found, *_check_cloze(_pair_cloze(dataset), options))
    if not JUDGING[dataset.rule].compares:
        versions: dict[str, list[str]] = {}
        whole = pl.concat_str("context_text", "text", separator=" ") if dataset.rule == "cloze" else "text"
        for item, text in dataset.items.select("item", whole).iter_rows():
            versions.setdefault(item, []).append(text)
        texts = [text for each in versions.values() for text in each]
        return _describe(name, found, *_check_texts(versions, _choose_knowledge(texts, dataset)))
    return _check_contrasts(name, found, dataset, options)


def _check_contrasts(name: str, found: CheckedFile, dataset: Dataset, options: _Options) -> Checked:
    """Minimal pairs: every better condition beside each worse one."""
    rows = _pair_up(dataset)
    pairs = [MinimalPair(row.item, row.suite, row.good.whole, row.bad.whole) for row in rows]
    knowledge, notes = _choose_knowledge([pair.good for pair in pairs], dataset)
    counters = open_counters(_list_tokenizers(options))
    findings = check_minimal_pairs(pairs, knowledge, counters=counters)
    if not counters:
        notes.append(
            "Token lengths were not compared; name a tokenizer with --tokenizer, or a model with -m."
        )
    requests, _ = build_requests(dataset.items)
    language = infer_language(dataset.items["text"].to_list(), dataset.languages)
    baselines = measure_baselines(
        dataset.items, requests, dataset.contrasts, language=language, corpus=options.corpus
    )
    if options.model is None and options.corpus is None:
        notes.append("No model looked for swapped labels; name one with -m.")
    findings += _find_swaps(pairs, rows, baselines, options)
    folded = fold_findings(findings, {pair.item: pair.suite for pair in pairs})
    checked = _describe(name, found, folded, [*notes, *baselines.notes])
    return replace(checked, baselines=baselines.table, decided=baselines.list_decided())


def _list_tokenizers(options: _Options) -> list[str]:
    """The tokenizers that are named, and that of the model, unless only a server has it."""
    spec = options.model.spec if isinstance(options.model, Model) else options.model
    own = [str(spec)] if spec is not None and not str(spec).startswith(SERVED) else []
    return [*options.tokenizers, *own]


class _Stimulus(NamedTuple):
    """A text, and what stands before it without being scored."""

    text: str
    context: str

    @property
    def whole(self) -> str:
        return f"{self.context} {self.text}" if self.context else self.text


class _Contrasted(NamedTuple):
    """Two stimuli of an item of which the first should be the better one."""

    item: str
    suite: str
    good: _Stimulus
    bad: _Stimulus


def _pair_up(dataset: Dataset) -> list[_Contrasted]:
    """The better stimulus of every contrast beside each of the worse ones."""
    whole = dataset.items
    if "context_text" not in whole.columns:
        whole = whole.with_columns(context_text=pl.lit(None, dtype=pl.String))
    held: dict[tuple[str, str, str], dict[str, _Stimulus]] = {}
    for row in whole.iter_rows(named=True):
        stimuli = held.setdefault((row["item"], row["suite"], row["phenomenon"]), {})
        stimuli[row["condition"]] = _Stimulus(row["text"], row["context_text"] or "")
    return [
        _Contrasted(item, suite, stimuli[contrast.better], stimuli[worse])
        for contrast in dataset.contrasts
        for (item, suite, phenomenon), stimuli in held.items()
        for worse in contrast.worse
        if {contrast.better, worse} <= set(stimuli) and contrast.phenomenon in (None, phenomenon)
    ]


def _find_swaps(
    pairs: Sequence[MinimalPair], rows: Sequence[_Contrasted], baselines: Baselines, options: _Options
) -> list[Finding]:
    """Pairs whose bad sentence a model, or a 5-gram of the user's text, finds far more probable."""
    found: list[Finding] = []
    if options.model is not None:
        lm = take_model(options.model)
        good, bad = _score(lm, [row.good for row in rows]), _score(lm, [row.bad for row in rows])
        margins = [one - other for one, other in zip(good, bad, strict=True)]
        found += check_swaps(pairs, margins, by=lm.info.name)
    if options.corpus is not None:
        margins = [baselines.margins[pair.item] for pair in pairs]
        found += check_swaps(pairs, margins, by=f"a 5-gram of {options.corpus.name}", far=FAR_FOR_NGRAM)
    return found


def _score(lm: Model, stimuli: Sequence[_Stimulus]) -> list[float]:
    """log p of each text given its context, if it has one."""
    values = [0.0] * len(stimuli)
    for bare in (True, False):
        places = [place for place, one in enumerate(stimuli) if bool(one.context) is not bare]
        texts, contexts = ([stimuli[place][field] for place in places] for field in (0, 1))
        scored = lm.score(texts, context=None if bare else contexts)["lp"] if places else ()
        for place, value in zip(places, scored, strict=True):
            values[place] = value
    return values


def _check_pairs(name: str, pairs: list[Pair], options: _Options) -> Checked:
    """Pairs of sentences that are no dataset: seeds, and what an extension has."""
    whole = CheckedFile(items=len(pairs), rows=2 * len(pairs), problems=pl.DataFrame(schema=PROBLEMS))
    return _describe(name, whole, *_check_cloze(pairs, options))


def _pair_cloze(dataset: Dataset) -> list[Pair]:
    """The sentences of cloze frames in two conditions, each frame with its target."""
    whole = pl.concat_str("context_text", "text", separator=" ").alias("sentence")
    held: dict[tuple[str, str], dict[str, str]] = {}
    rows = dataset.items.with_columns(whole).select("suite", "item", "condition", "sentence").iter_rows()
    for suite, item, condition, sentence in rows:
        held.setdefault((suite, item), {})[condition] = sentence
    one, other = dataset.change
    return [Pair(item, said[one], said[other]) for (_, item), said in held.items() if len(said) > 1]


def _check_cloze(pairs: list[Pair], options: _Options) -> tuple[list[Finding], list[str]]:
    """Pairs of cloze sentences, by the rules of `felicity stimuli extend`."""
    if options.form is not None and options.form not in FORMS:
        raise UnknownName("form", options.form, FORMS)
    form = FORMS[options.form] if options.form else guess_form(pairs)
    knowledge, notes = _choose_knowledge([text for pair in pairs for text in pair.sentences], None)
    words = knowledge.words if knowledge else None
    found = [Finding(pair.item, *violation) for pair, violation in check_set(pairs, form, words=words)]
    for pair in pairs:
        faults = (
            [fault for text in pair.sentences for fault in find_faults(text, knowledge)] if knowledge else []
        )
        told = [Finding(pair.item, fault.rule, fault.reason) for fault in faults if fault.rule in OF_CLOZE]
        found += dict.fromkeys(told)
    skipped = skipped_rules(RuleInput(form=form, seen=Seen(), words=words))
    if skipped and knowledge:
        notes.append(f"Not checked, because WordNet is not installed: {', '.join(skipped)}.")
    return found, notes


def _check_texts(
    texts: Mapping[str, Sequence[str]], known: tuple[Knowledge | None, list[str]]
) -> tuple[list[Finding], list[str]]:
    return check_sentences(texts, known[0]), known[1]


def _choose_knowledge(texts: Sequence[str], dataset: Dataset | None) -> tuple[Knowledge | None, list[str]]:
    """What English words are checked by, None for another language, and what is not checked."""
    if infer_language(texts, dataset.languages if dataset else ()) != "en":
        return None, ["The sentences are not English, so their words were not checked."]
    knowledge = open_knowledge(find_frequency())
    unchecked: dict[str, list[str]] = {}
    for rule, reason in knowledge.list_unchecked().items():
        unchecked.setdefault(reason, []).append(rule)
    return knowledge, [f"Not checked: {', '.join(rules)}; {reason}." for reason, rules in unchecked.items()]


def _describe(name: str, found: CheckedFile, findings: Sequence[Finding], notes: Sequence[str]) -> Checked:
    lines: dict[str, int] = {}
    if found.dataset is not None and "line" in found.dataset.items.columns:
        rows = found.dataset.items.select("item", "line").iter_rows()
        lines = dict(reversed(list(rows)))
    told = [(lines.get(one.item), one.item, one.rule, one.detail) for one in findings]
    return Checked(
        name=name,
        items=found.items,
        rows=found.rows,
        counted=found.counted,
        problems=found.problems,
        findings=pl.DataFrame(told, schema=FINDINGS, orient="row"),
        notes=tuple(notes),
    )
