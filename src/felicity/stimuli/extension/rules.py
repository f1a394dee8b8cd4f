"""Why a sentence or a pair is rejected: named rules, each a function that gives a reason or nothing.

Rules for sentences are asked first, then those for pairs, each in the order of the registry; the first
reason decides, and all are kept. A rule that only flags leaves the decision to a person. An outside
package adds a rule through the entry point group `felicity.stimulus_rule`, whose object is a `Rule`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

from felicity.core.registry import Registry
from felicity.stimuli.checks import WordList, find_wrong_articles
from felicity.stimuli.extension.forms import Form, Parts
from felicity.stimuli.items import Pair, clean
from felicity.stimuli.templates import is_proper, singularize

TOKEN = re.compile(r"[\w'-]+")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
# A sentence this like the instruction, or a stretch of it, is an echo of it.
ECHO = 0.75
ECHO_WORDS = 4
# A sentence of so few words, or that ends in one of these, is not finished.
SHORT = 3
UNFINISHED = (
    "a",
    "an",
    "the",
    "which",
    "who",
    "that",
    "had",
    "has",
    "is",
    "are",
    "not",
    "and",
    "or",
    "of",
    "to",
)


class Violation(NamedTuple):
    """What a rule found, in words that name the culprit."""

    rule: str
    reason: str


@dataclass
class Seen:
    """What came before: the seeds and every pair so far, by the keys that duplicates share."""

    pairs: dict[tuple[str, ...], str] = field(default_factory=dict)
    near: dict[object, str] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    affirmed: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_seed(self, pair: Pair, form: Form | None) -> None:
        """Remember a seed; its words are known words."""
        self.add(pair, form, name=f"seed {pair.item}")
        self.words |= {word.lower() for sentence in pair.sentences for word in WORD.findall(sentence)}

    def add(self, pair: Pair, form: Form | None, *, name: str | None = None) -> None:
        """Remember a pair under `name`."""
        told = name or pair.item
        self.pairs.setdefault(pair_key(pair), told)
        parts = form.parse_pair(pair) if form else None
        if form and parts:
            for key in near_keys(parts, form):
                self.near.setdefault(key, told)
            if not form.reversal:
                self.affirmed.setdefault((singularize(parts[0].head), parts[0].target.lower()), told)


@dataclass(frozen=True)
class RuleInput:
    """What rules may ask: the form, the instruction, a word list if available, and what came before."""

    form: Form | None
    seen: Seen
    instruction: str = ""
    words: WordList | None = None

    def parts(self, pair: Pair) -> tuple[Parts, Parts] | None:
        """The parts of the pair, if its form is known."""
        return self.form.parse_pair(pair) if self.form else None


@dataclass(frozen=True, kw_only=True)
class AnswerRule:
    """A rule by its meaning. It checks sentences or pairs; `flags` if it never rejects.

    words: whether it needs a word list; forms: the forms it is for, all if empty.
    """

    meaning: str
    sentence: Callable[[str, RuleInput], str | None] | None = None
    pair: Callable[[Pair, RuleInput], str | None] | None = None
    flags: bool = False
    words: bool = False
    forms: tuple[str, ...] = ()

    def applies(self, case: RuleInput) -> bool:
        """Whether the rule can say anything here."""
        if self.words and case.words is None:
            return False
        return not self.forms or (case.form is not None and case.form.name in self.forms)


RULES: Registry[AnswerRule] = Registry("stimulus_rule")
# Given by the parser and by people, not by a function.
UNPAIRED = "unpaired"
BY_PEOPLE = {
    "semantic": "semantically wrong, or a wrong reversal of roles",
    "not a category": "the object is no category of the subject",
    "ambiguous": "more than one reading",
    "offensive": "offensive",
    "other": "another reason",
}


def pair_key(pair: Pair) -> tuple[str, ...]:
    """What makes two pairs the same: their sentences, without case, punctuation and order."""
    return tuple(sorted(map(sentence_key, pair.sentences)))


def sentence_key(sentence: str) -> str:
    """What makes two sentences the same: their words and numbers, without case and punctuation."""
    return " ".join(TOKEN.findall(sentence.lower()))


def near_keys(parts: tuple[Parts, Parts], form: Form) -> list[object]:
    """What near-duplicates share: subject and category; or the two roles and one of the verbs."""
    first, second = parts
    if not form.reversal:
        return [("is", singularize(first.head), singularize(first.target.lower()))]
    nouns = frozenset(singularize(noun) for noun in first.nouns)
    return [("roles", nouns, target.lower()) for target in {first.target, second.target}]


def check_sentence(sentence: str, case: RuleInput) -> list[Violation]:
    """What the rules for single sentences find; rejections only."""
    found = []
    for name, rule in RULES.items():
        if rule.sentence is not None and not rule.flags and rule.applies(case):
            reason = rule.sentence(sentence, case)
            if reason:
                found.append(Violation(name, reason))
    return found


def check_pair(pair: Pair, case: RuleInput) -> tuple[list[Violation], list[Violation]]:
    """What the rules for pairs find: reasons to reject, and flags."""
    rejections: list[Violation] = []
    flags: list[Violation] = []
    for name, rule in RULES.items():
        if rule.pair is not None and rule.applies(case):
            reason = rule.pair(pair, case)
            if reason:
                (flags if rule.flags else rejections).append(Violation(name, reason))
    return rejections, flags


def skipped_rules(case: RuleInput) -> list[str]:
    """Rules that would say something here if there were a word list."""
    return [name for name, rule in RULES.items() if rule.words and case.words is None]


def _empty(sentence: str, _: RuleInput) -> str | None:
    return None if sentence.strip() else "an empty line"


def _echo(sentence: str, case: RuleInput) -> str | None:
    words, told = WORD.findall(sentence.lower()), WORD.findall(case.instruction.lower())
    if len(words) < ECHO_WORDS or not told:
        return None
    match = SequenceMatcher(None, words, told, autojunk=False).find_longest_match()
    return "repeats the instruction" if match.size >= max(ECHO_WORDS, ECHO * len(words)) else None


def _half(sentence: str, case: RuleInput) -> str | None:
    if case.form is None or not sentence.strip() or case.form.parse(sentence):
        return None
    words = WORD.findall(sentence)
    last = words[-1].lower() if words else ""
    if len(words) <= SHORT or last in UNFINISHED or ("which" in words and "had" not in words):
        return f"breaks off at '{last}'"
    return None


def _form(sentence: str, case: RuleInput) -> str | None:
    if case.form is None or not sentence.strip() or case.form.parse(sentence) or _half(sentence, case):
        return None
    return "a sentence, but not of the examples' form"


def _duplicate(pair: Pair, case: RuleInput) -> str | None:
    before = case.seen.pairs.get(pair_key(pair))
    return f"the same as {before}" if before else None


def _tautology(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    if parts is None:
        return None
    subject, target = (singularize(text.lower()) for text in (parts[0].head, parts[0].target))
    return f"says that a thing is itself: '{pair.first}'" if subject == target else None


def _multiword(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    wide = [one.target for one in parts or () if " " in one.target]
    return f"'{wide[0]}' is more than one word" if wide else None


def _subject(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    if parts is None or parts[0].head == parts[1].head:
        return None
    return f"'{parts[0].head}' in the first sentence, '{parts[1].head}' in the second"


def _article(pair: Pair, _: RuleInput) -> str | None:
    wrong = [phrase for sentence in pair.sentences for phrase in find_wrong_articles(sentence)]
    return ", ".join(f"'{phrase}'" for phrase in dict.fromkeys(wrong)) if wrong else None


def _reversal(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    if parts is None:
        return None
    first, second = (tuple(map(singularize, one.nouns)) for one in parts)
    if first == second[::-1]:
        return None
    told = "the nouns stand in the same roles" if first == second else "other nouns in the second sentence"
    return f"{told}: {' and '.join(first)}, {' and '.join(second)}"


def _unknown(pair: Pair, case: RuleInput) -> list[str]:
    words = case.words
    if words is None:
        return []
    inside = [word for sentence in pair.sentences for word in WORD.findall(sentence)]
    known = case.seen.words
    # A capital, at the beginning too, is taken for that of a name.
    return [
        word
        for word in dict.fromkeys(inside)
        if not is_proper(word) and word.lower() not in known and not words.knows(word)
    ]


def _spelling(pair: Pair, case: RuleInput) -> str | None:
    if case.words is None:
        return None
    found = [(word, case.words.find_variant(word)) for word in _unknown(pair, case)]
    said = [f"'{word}', perhaps '{near}'" for word, near in found if near]
    return ", ".join(said) or None


def _unknown_word(pair: Pair, case: RuleInput) -> str | None:
    if case.words is None:
        return None
    strange = [word for word in _unknown(pair, case) if not case.words.find_variant(word)]
    return "WordNet does not know " + ", ".join(f"'{word}'" for word in strange) if strange else None


def _near(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    if parts is None or case.form is None or pair_key(pair) in case.seen.pairs:
        return None
    for key in near_keys(parts, case.form):
        before = case.seen.near.get(key)
        if before and before != pair.item:
            return f"nearly the same as {before}"
    return None


def _contradiction(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    if parts is None:
        return None
    claim = singularize(parts[1].head), parts[1].target.lower()
    before = case.seen.affirmed.get(claim)
    return f"denies what {before} affirms: '{claim[0]}' is '{claim[1]}'" if before else None


def _same_target(pair: Pair, case: RuleInput) -> str | None:
    parts = case.parts(pair)
    same = parts is not None and parts[0].target.lower() == parts[1].target.lower()
    return f"both targets are '{parts[0].target}'" if parts is not None and same else None


def _offensive(pair: Pair, case: RuleInput) -> str | None:
    if case.words is None:
        return None
    for word in WORD.findall(" ".join(pair.sentences)):
        gloss = case.words.offensive.get(singularize(word.lower()))
        if gloss:
            return f"a sense of '{word}' is marked in WordNet: {gloss.split(';')[0][:80]}"
    return None


RULES.register("empty", AnswerRule(meaning="an empty line", sentence=_empty))
RULES.register("echo", AnswerRule(meaning="repeats the instruction", sentence=_echo))
RULES.register("half sentence", AnswerRule(meaning="breaks off", sentence=_half))
RULES.register(
    "another form", AnswerRule(meaning="a sentence, but not of the examples' form", sentence=_form)
)
RULES.register("duplicate", AnswerRule(meaning="the same pair as a seed or an earlier one", pair=_duplicate))
RULES.register(
    "tautology", AnswerRule(meaning="subject and object are the same", pair=_tautology, forms=("negation",))
)
RULES.register("multi-word object", AnswerRule(meaning="the target is several words", pair=_multiword))
RULES.register(
    "subject mismatch", AnswerRule(meaning="the two sentences have different subjects", pair=_subject)
)
RULES.register(
    "not a reversal", AnswerRule(meaning="the roles are not exchanged", pair=_reversal, forms=("role",))
)
RULES.register(
    "wrong article", AnswerRule(meaning="a for an, an for a, or either before a plural", pair=_article)
)
# No word list is complete (WordNet lacks "zookeeper"), so these two are for a person to decide.
RULES.register(
    "spelling variant", AnswerRule(meaning="nearly a known word", pair=_spelling, flags=True, words=True)
)
RULES.register(
    "unknown word", AnswerRule(meaning="no known word", pair=_unknown_word, flags=True, words=True)
)
RULES.register(
    "near-duplicate", AnswerRule(meaning="shares its main words with an earlier pair", pair=_near, flags=True)
)
RULES.register(
    "contradiction",
    AnswerRule(
        meaning="denies what another pair affirms", pair=_contradiction, flags=True, forms=("negation",)
    ),
)
RULES.register(
    "same target", AnswerRule(meaning="both sentences end in the same word", pair=_same_target, flags=True)
)
RULES.register(
    "offensive",
    AnswerRule(meaning="a word that WordNet marks as offensive", pair=_offensive, flags=True, words=True),
)


def check_set(
    pairs: Sequence[Pair], form: Form | None, *, words: WordList | None
) -> list[tuple[Pair, Violation]]:
    """What the rules find in a finished set, pair by pair, including flags.

    Repeated sentences are found too, once per repetition, whatever pair they are in.
    """
    case = RuleInput(form=form, seen=Seen(), words=words)
    for pair in pairs:
        if form and (parts := form.parse_pair(pair)) and not form.reversal:
            case.seen.affirmed.setdefault(
                (singularize(parts[0].head), parts[0].target.lower()), f"pair {pair.item}"
            )
    found: list[tuple[Pair, Violation]] = []
    sentences: dict[str, str] = {}
    for pair in pairs:
        for sentence in pair.sentences:
            found += [(pair, one) for one in check_sentence(sentence, case)]
            before = sentences.setdefault(sentence_key(sentence), pair.item)
            if before != pair.item:
                found.append(
                    (pair, Violation("repeated sentence", f"'{clean(sentence)}' is in pair {before} too"))
                )
        rejections, flags = check_pair(pair, case)
        found += [(pair, one) for one in (*rejections, *flags)]
        case.seen.add(pair, form, name=f"pair {pair.item}")
    return found


def count_findings(found: Iterable[tuple[Pair, Violation]]) -> dict[str, int]:
    """How often each rule found something."""
    counts: dict[str, int] = {}
    for _, finding in found:
        counts[finding.rule] = counts.get(finding.rule, 0) + 1
    return counts
