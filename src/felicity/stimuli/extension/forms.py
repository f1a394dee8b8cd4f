"""The forms of pairs that felicity can parse: negation, and role reversal.

A form knows its two conditions, the instruction that asks a language model for more, how one sentence is
parsed, and when two sentences make a pair. Rules read the parts. An outside package adds a form through the
entry point group `felicity.pair_form`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from felicity.core.registry import Registry
from felicity.stimuli.items import Pair, clean
from felicity.stimuli.templates import singularize


class Parts(NamedTuple):
    """The parts of a sentence, in lower case except for the target.

    head: what both members share (the subject of a negation; subject and verb of a role reversal).
    nouns: the two roles, or the subject alone. target: what comes last, one word or more.
    """

    head: str
    nouns: tuple[str, ...]
    negated: bool
    target: str


@dataclass(frozen=True, kw_only=True)
class Form:
    """How the pairs of a dataset are built."""

    name: str
    phenomenon: str
    conditions: tuple[str, str]
    instruction: str
    parse: Callable[[str], Parts | None]
    matches: Callable[[Parts, Parts], bool]
    reversal: bool = False

    def parse_pair(self, pair: Pair) -> tuple[Parts, Parts] | None:
        """The parts of both sentences; None if one of them is not of this form."""
        first, second = self.parse(pair.first), self.parse(pair.second)
        return None if first is None or second is None else (first, second)


NEGATION = re.compile(
    r"(?:(?:an?|the) )?(?P<subject>\S.*?) (?:is|are) (?P<no>not )?(?:an? )?(?P<target>\S.*)", re.I
)
# The second role may be a name, without an article.
ROLE = re.compile(
    r"(?P<head>\S.*?) which (?P<one>\S.*?) (?:the |(?=(?-i:[A-Z])))(?P<two>\S.*?) had (?P<target>\S.*)", re.I
)
ARTICLES = ("a", "an", "the")


def _parse_negation(sentence: str) -> Parts | None:
    found = NEGATION.fullmatch(clean(sentence))
    if found is None or found["target"].lower() in ARTICLES or found["subject"].lower() in ARTICLES:
        return None
    subject = found["subject"].lower()
    return Parts(subject, (subject,), bool(found["no"]), found["target"])


def _parse_role(sentence: str) -> Parts | None:
    found = ROLE.fullmatch(clean(sentence))
    if found is None:
        return None
    nouns = (found["one"].lower(), found["two"].lower())
    return Parts(found["head"].lower(), nouns, False, found["target"])


def _same_role_frame(first: Parts, second: Parts) -> bool:
    """Members of a pair share their head, or at least the two nouns in either order."""
    return first.head == second.head or set(map(singularize, first.nouns)) == set(
        map(singularize, second.nouns)
    )


FORMS: Registry[Form] = Registry("pair_form")
FORMS.register(
    "negation",
    Form(
        name="negation",
        phenomenon="negation",
        conditions=("affirmative", "negative"),
        instruction="The task is to generate affirmative sentences and its negation. The object of the "
        "sentence should be a hypernym of the subject of the sentence. Generate more sentence pairs like "
        "these:",
        parse=_parse_negation,
        matches=lambda first, second: not first.negated and second.negated,
    ),
)
FORMS.register(
    "role",
    Form(
        name="role",
        phenomenon="role reversal",
        conditions=("a", "b"),
        instruction="The task is to reverse the role in the sentences. Generate more sentences like this:",
        parse=_parse_role,
        matches=_same_role_frame,
        reversal=True,
    ),
)
# Flagged continuations for people to decide: as a model wrote them, and as they are proposed.
FORMS.register(
    "continuation",
    Form(
        name="continuation",
        phenomenon="continuation",
        conditions=("written", "proposed"),
        instruction="Continue the sentence.",
        parse=lambda _: None,
        matches=lambda _first, _second: False,
    ),
)


def guess_form(pairs: list[Pair]) -> Form | None:
    """The form that most of these pairs have; None if fewer than half have any."""
    counts = {name: sum(form.parse_pair(pair) is not None for pair in pairs) for name, form in FORMS.items()}
    best = max(counts, key=lambda name: counts[name])
    return FORMS[best] if 2 * counts[best] > len(pairs) else None
