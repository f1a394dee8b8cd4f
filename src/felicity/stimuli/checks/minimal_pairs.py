"""What is wrong with minimal pairs, and with sets of sentences: what a careful reader would ask about.

A mistake in the bad sentence that is all in which it differs from the good one is what the pair tests, and is
not reported. What half of a suite has in common (a construction that is longer than the other) is reported
once for the suite. Nothing is changed: every finding is for a person to decide.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from felicity.stimuli.checks.sentences import (
    ARTICLE,
    MASS,
    PARTICIPLE,
    REPEATED,
    SPELLING,
    UNKNOWN,
    Fault,
    Knowledge,
    find_faults,
    split_words,
)
from felicity.stimuli.checks.word_list import read_function_words

# Marks that are compared between the members of a pair; those within words are not.
MARK = re.compile(r"(?<!\w)['\u2019]|['\u2019](?!\w)|[^\w\s'\u2019-]|(?<!\w)-|-(?!\w)")
PUNCTUATION, CAPITALS, LENGTH, TOKENS = "punctuation", "capitals", "unequal length", "unequal tokens"
NEAR, SWAPPED = "near-duplicate", "labels swapped?"
PAIR_RULES = (PUNCTUATION, CAPITALS, LENGTH, TOKENS, NEAR, SWAPPED)
# Mistakes that a good sentence does not have, whatever it is about.
MISTAKES = (ARTICLE, MASS, PARTICIPLE, REPEATED, SPELLING, UNKNOWN)
# Members with equally many words may differ by so many characters.
MOST_CHARACTERS = 5
# Sentences of fewer words resemble each other without being copies.
LEAST_WORDS = 5
# A suite of at least so many pairs, of which this share has a finding, is reported as a whole.
LEAST_PAIRS, SHARED = 4, 0.5
# A model prefers the bad sentence by far if it is this many nats more probable, in a suite of which it judges
# this share of the pairs right. If it judges so many wrong, that is said of the suite.
FAR = 5.0
MOSTLY_RIGHT, MOSTLY_WRONG = 0.6, 0.8
DETERMINERS = {"a", "an", "the", "this", "that", "these", "those", "some", "his", "her", "their", "my", "our"}
# In English text almost half of the words are function words; in German or Dutch some are spelt alike.
LEAST_FUNCTION_WORDS = 0.2

CountTokens = Callable[[Sequence[str]], list[int]]


class MinimalPair(NamedTuple):
    """The acceptable sentence and the other one."""

    item: str
    suite: str
    good: str
    bad: str


class Finding(NamedTuple):
    """What a rule found in an item, or in a whole suite if `item` is its name."""

    item: str
    rule: str
    detail: str


def looks_english(texts: Sequence[str]) -> bool:
    """Whether enough of the words are English function words.

    >>> looks_english(["The cat is on the mat."]), looks_english(["Die Katze ist auf der Matte."])
    (True, False)
    """
    counts = Counter(word.lower() for text in texts for word in split_words(text))
    function = sum(count for word, count in counts.items() if word in read_function_words())
    return function >= LEAST_FUNCTION_WORDS * max(1, counts.total())


def check_minimal_pairs(
    pairs: Sequence[MinimalPair],
    knowledge: Knowledge | None,
    *,
    counters: Mapping[str, CountTokens] | None = None,
) -> list[Finding]:
    """What the rules find in pairs, in their order; a rule that only needs the pair is asked of every pair.

    knowledge: what English words are checked by; None for other languages. counters: tokenizers under which
    both members should have equally many tokens, by name.
    """
    found: list[Finding] = []
    for pair in pairs:
        found += _check_words(pair, knowledge) if knowledge is not None else []
        found += [Finding(pair.item, rule, detail) for rule, detail in _compare(pair)]
    found += _check_tokens(pairs, counters or {})
    texts = {pair.item: pair.good for pair in pairs}
    return found + _find_near(texts)


def check_sentences(texts: Mapping[str, Sequence[str]], knowledge: Knowledge | None) -> list[Finding]:
    """What is wrong with sentences that are no pairs, by item; of several, what all have in common."""
    found: list[Finding] = []
    for item, versions in texts.items():
        if knowledge is None:
            break
        faults = [find_faults(text, knowledge) for text in versions]
        shared = [fault for fault in faults[0] if all(_has(others, fault) for others in faults[1:])]
        found += [Finding(item, fault.rule, fault.reason) for fault in shared]
    firsts = {item: versions[0] for item, versions in texts.items()}
    return found + _find_near(firsts)


def _has(faults: Sequence[Fault], fault: Fault) -> bool:
    return any(one[:2] == fault[:2] for one in faults)


def _check_words(pair: MinimalPair, knowledge: Knowledge) -> list[Finding]:
    good, bad = find_faults(pair.good, knowledge), find_faults(pair.bad, knowledge)
    changed = _find_changes(pair.good, pair.bad)
    found = []
    for fault in good:
        only = not any(_touches(one, changed[1]) for one in bad) and _covers(fault, changed[0])
        found.append(Finding(pair.item, fault.rule, f"{fault.reason} in the good sentence"))
        if only and fault.rule in MISTAKES:
            detail = f"{fault.reason} is all in which the good sentence differs from the bad one"
            found.append(Finding(pair.item, SWAPPED, detail))
    for fault in bad:
        if not _has(good, fault) and not _covers(fault, changed[1]):
            detail = f"{fault.reason} in the bad sentence, besides what the pair tests"
            found.append(Finding(pair.item, fault.rule, detail))
    return found


def _find_changes(good: str, bad: str) -> tuple[set[int], set[int]]:
    """The words of each sentence that the other one does not have at that place."""
    one, other = split_words(good), split_words(bad)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    mine, theirs = set[int](), set[int]()
    for kind, begin, end, first, last in matcher.get_opcodes():
        if kind != "equal":
            # Of words that are only left out, the place where they were is meant.
            mine |= set(range(begin, end)) or {begin}
            theirs |= set(range(first, last)) or {first}
    return mine, theirs


def _covers(fault: Fault, changed: set[int]) -> bool:
    return changed <= set(range(fault.begin, max(fault.end, fault.begin + 1)))


def _touches(fault: Fault, changed: set[int]) -> bool:
    return bool(changed & set(range(fault.begin, fault.end)))


def _compare(pair: MinimalPair) -> list[tuple[str, str]]:
    """How the members differ in punctuation, capitals and length."""
    found = []
    marks = [MARK.findall(text) for text in (pair.good, pair.bad)]
    if Counter(marks[0]) != Counter(marks[1]):
        shown = [f"'{' '.join(one)}'" if one else "none" for one in marks]
        found.append((PUNCTUATION, f"{shown[0]} in the good sentence, {shown[1]} in the bad one"))
    capital = _compare_capitals(pair)
    if capital:
        found.append((CAPITALS, capital))
    counts = [len(split_words(text)) for text in (pair.good, pair.bad)]
    if counts[0] != counts[1]:
        found.append((LENGTH, f"{counts[0]} words in the good sentence, {counts[1]} in the bad one"))
    elif abs(len(pair.good) - len(pair.bad)) > MOST_CHARACTERS:
        sizes = f"{len(pair.good)} characters in the good sentence, {len(pair.bad)} in the bad one"
        found.append((LENGTH, sizes))
    return found


def _compare_capitals(pair: MinimalPair) -> str:
    """A first letter that only one member writes as a capital, or a word that they write differently."""
    words = [split_words(text) for text in (pair.good, pair.bad)]
    if not all(words):
        return ""
    first = [one[0][0] for one in words]
    if first[0].isupper() != first[1].isupper() and all(letter.isalpha() for letter in first):
        return f"'{words[0][0]}' begins the good sentence, '{words[1][0]}' the bad one"
    inside = [{word.lower(): word for word in one[1:]} for one in words]
    for lower, word in inside[0].items():
        other = inside[1].get(lower)
        if other is not None and other != word and not {word, other} & set(words[0][1:]) & set(words[1][1:]):
            return f"'{word}' in the good sentence, '{other}' in the bad one"
    return ""


def _check_tokens(pairs: Sequence[MinimalPair], counters: Mapping[str, CountTokens]) -> list[Finding]:
    found = []
    for name, count in counters.items():
        good, bad = (count([pair[place] for pair in pairs]) for place in (2, 3))
        for pair, one, other in zip(pairs, good, bad, strict=True):
            if one != other:
                detail = f"{one} tokens in the good sentence, {other} in the bad one ({name})"
                found.append(Finding(pair.item, TOKENS, detail))
    return found


def _find_near(texts: Mapping[str, str]) -> list[Finding]:
    """Sentences that differ from an earlier one by one word at most, determiners and inflection aside."""
    seen: dict[tuple[str, ...], str] = {}
    found = []
    for item, text in texts.items():
        stems = [_stem(word) for word in split_words(text)]
        if len(stems) < LEAST_WORDS:
            continue
        # A sentence with one word masked is the same for all that differ in that word.
        keys = [(*stems[:place], "*", *stems[place + 1 :]) for place in range(len(stems))]
        keys = [key for key, stem in zip(keys, stems, strict=True) if stem != "the"]
        before = next((seen[key] for key in keys if key in seen), None)
        if before is not None:
            found.append(Finding(item, NEAR, f"nearly the sentence of {before}"))
        for key in keys:
            seen.setdefault(key, item)
    return found


def _stem(word: str) -> str:
    lower = word.lower()
    if lower in DETERMINERS:
        return "the"
    for ending in ("ing", "ed", "es", "s", "e"):
        if lower.endswith(ending) and len(lower) > len(ending) + 2:
            return lower.removesuffix(ending)
    return lower


def check_swaps(
    pairs: Sequence[MinimalPair], margins: Sequence[float], *, by: str, far: float = FAR
) -> list[Finding]:
    """Pairs whose bad sentence a model finds more probable than their good one, by `far` nats or more.

    margins: log p(good) - log p(bad) of every pair, in nats. by: what computed them. A model that prefers
    most of the bad sentences of a suite may lack the knowledge, or all labels may be swapped; that is one
    finding for the suite. In a suite between the two it is no judge, and nothing is said.
    """
    suites: dict[str, list[float]] = {}
    for pair, margin in zip(pairs, margins, strict=True):
        suites.setdefault(pair.suite, []).append(margin)
    found = []
    wrong = {suite: sum(value < 0 for value in values) / len(values) for suite, values in suites.items()}
    for suite, values in suites.items():
        if len(values) >= LEAST_PAIRS and wrong[suite] >= MOSTLY_WRONG:
            count = round(wrong[suite] * len(values))
            detail = f"{by} prefers the bad sentence in {count:,} of {len(values):,} pairs of the suite"
            found.append(Finding(suite, SWAPPED, detail))
    for pair, margin in zip(pairs, margins, strict=True):
        judge = wrong[pair.suite] <= 1 - MOSTLY_RIGHT or len(suites[pair.suite]) < LEAST_PAIRS
        if margin <= -far and judge:
            detail = f"{by} finds the bad sentence more probable, by {-margin:.1f} nats"
            found.append(Finding(pair.item, SWAPPED, detail))
    return found


def fold_findings(found: Sequence[Finding], suites: Mapping[str, str]) -> list[Finding]:
    """The same, with one finding for a suite instead of one for each of its pairs, if most have it.

    suites: the suite of every item. Only differences that a construction may need are folded.
    """
    sizes = Counter(suites.values())
    each = {(finding.item, finding.rule) for finding in found if finding.item in suites}
    counts = Counter((suites[item], rule) for item, rule in each)
    folded = {
        key: count
        for key, count in counts.items()
        if key[1] in PAIR_RULES and sizes[key[0]] >= LEAST_PAIRS and count >= SHARED * sizes[key[0]]
    }
    kept: list[Finding] = []
    for finding in found:
        key = (suites.get(finding.item, ""), finding.rule)
        if key not in folded:
            kept.append(finding)
        elif folded[key]:
            detail = f"{folded[key]:,} of {sizes[key[0]]:,} pairs, such as {finding.item}: {finding.detail}"
            kept.append(Finding(key[0], finding.rule, detail))
            folded[key] = 0
    return kept
