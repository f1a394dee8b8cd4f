"""Frames: sentences with slots, and what can be done to them.

{member}            the word as it is           {Member}            with a capital
{a member}          with its article, by sound   {A member}          the same, beginning the sentence
{member|plural}     in the plural                {member|singular}   in the singular
{is member}         is or are, as the word needs it; likewise {was member}, {has member}, {does member}

Negation and role reversal are operations: each takes a frame and gives a frame.
"""

import re
from collections.abc import Collection, Mapping

from felicity.core.errors import BadInput
from felicity.stimuli.templates.noun_forms import add_article, is_plural, is_proper, pluralize, singularize

SLOT = re.compile(r"\{(?:([A-Za-z]+) )?([A-Za-z_]+)(?:\|([a-z]+))?\}")
AGREEMENT = {"is": "are", "was": "were", "has": "have", "does": "do"}
ARTICLES = ("a", "an")
AUXILIARIES = (
    *AGREEMENT,
    *AGREEMENT.values(),
    *("had", "did", "can", "could", "will", "would", "shall", "should", "may", "might", "must"),
)
NUMBERS = {"plural": pluralize, "singular": singularize}
PIECE = re.compile(r"\{[^{}]*\}|\S+")


def list_slots(frame: str) -> list[str]:
    """The names of a frame's slots, in order.

    >>> list_slots("{A member} is {a category}")
    ['member', 'category']
    """
    return [found[2].lower() for found in SLOT.finditer(frame)]


def negate(frame: str) -> str:
    """The frame with `not` behind its first auxiliary.

    >>> negate("{A member} is {a category}"), negate("{Member|plural} {is member} {category|plural}")
    ('{A member} is not {a category}', '{Member|plural} {is member} not {category|plural}')

    Raises BadInput if there is no auxiliary to negate.
    """
    for piece in PIECE.finditer(frame):
        slot = SLOT.fullmatch(piece[0])
        word = (slot[1] or "") if slot else piece[0].lower()
        if word in (AGREEMENT if slot else AUXILIARIES):
            return f"{frame[: piece.end()]} not{frame[piece.end() :]}"
    raise BadInput(f"The frame '{frame}' has no auxiliary to negate; write is, had, can or another one.")


def swap(frame: str, first: str, second: str) -> str:
    """The frame with two slots exchanged: the roles reversed.

    >>> swap("which {first} the {second} had", "first", "second")
    'which {second} the {first} had'

    Raises BadInput if a slot is not in the frame.
    """
    return replace_slots(frame, {first: second, second: first})


def replace_slots(frame: str, names: Mapping[str, str]) -> str:
    """The frame with slots renamed.

    Raises BadInput if a slot is not in the frame.
    """
    known = list_slots(frame)
    for name in names:
        if name not in known:
            raise BadInput(f"The frame '{frame}' has no slot '{name}'; it has {', '.join(known)}.")

    def rename(found: re.Match[str]) -> str:
        new = names.get(found[2].lower(), found[2])
        new = new.capitalize() if found[2][0].isupper() else new
        return found[0].replace(found[2], new)

    return SLOT.sub(rename, frame)


def fill_frame(
    frame: str,
    values: Mapping[str, str],
    *,
    nouns: frozenset[str] | None = None,
    bare: Collection[str] = (),
) -> str:
    """The frame with words in its slots; with a capital if the frame begins with one.

    `nouns` are the slots that may take an article, a number or a verb that agrees; all may by default. `bare`
    are the slots that take no article, because their word is a mass noun here.

    >>> fill_frame("{A member} is {a category}", {"member": "oyster", "category": "fish"})
    'An oyster is a fish'
    >>> fill_frame("{A member} {is member} not {a category}", {"member": "geese", "category": "tree"})
    'Geese are not a tree'

    Raises BadInput for a slot without a value and for a form that its type does not have.
    """

    def put(found: re.Match[str]) -> str:
        before, name, form = found[1], found[2].lower(), found[3]
        if name not in values:
            raise BadInput(f"The frame '{frame}' has a slot '{name}' that nothing fills.")
        if (before or form) and nouns is not None and name not in nouns:
            raise BadInput(
                f"The slot '{name}' is not a noun, so '{found[0]}' has no meaning; give it type = \"noun\"."
            )
        word = values[name]
        if form is not None:
            if form not in NUMBERS:
                raise BadInput(f"'{found[0]}' asks for '{form}'; a noun has plural and singular.")
            word = word if is_proper(word) else NUMBERS[form](word)
        if before is None:
            return word[:1].upper() + word[1:] if found[2][0].isupper() else word
        if before.lower() in AGREEMENT:
            return AGREEMENT[before.lower()] if is_plural(word) else before.lower()
        if before.lower() in ARTICLES:
            return add_article(word, bare=name in bare)
        raise BadInput(f"'{found[0]}' begins with '{before}'; write a, is, was, has or does before the slot.")

    text = SLOT.sub(put, frame)
    begins = SLOT.match(frame)
    capital = (begins[1] or begins[2])[0].isupper() if begins else frame[:1].isupper()
    return text[:1].upper() + text[1:] if capital else text
