"""Lower case that keeps the number of characters, so that offsets into the text stay right."""

# The dotted capital I is the one character that `str.lower` turns into two; its dot is left out.
DOTTED = str.maketrans({"İ": "i"})
# In Turkish and Azerbaijani the capital of i has a dot, and the small letter of I has none.
TURKISH = str.maketrans({"İ": "i", "I": "ı"})
LETTERS = {"lower": DOTTED, "lower:tr": TURKISH}


def apply_casing(text: str, casing: str) -> str:
    """The text in a policy's casing: `keep`, `lower`, or `lower:tr` for Turkish and Azerbaijani.

    A capital sigma at the end of a word becomes the final one, as Unicode prescribes.

    >>> apply_casing("ISPARTA İzmir", "lower"), apply_casing("ISPARTA İzmir", "lower:tr")
    ('isparta izmir', 'ısparta izmir')
    >>> apply_casing("ΟΔΟΣ", "lower"), apply_casing("ΟΔΟΣ", "keep")
    ('οδος', 'ΟΔΟΣ')
    """
    return text if casing == "keep" else text.translate(LETTERS[casing]).lower()
