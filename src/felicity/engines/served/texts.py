"""Prompts sent as texts: the server tokenizes, and its tokens are placed in what was sent."""

from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.engines.served.dialects import Reading
from felicity.engines.served.pieces import find_spans
from felicity.engines.served.tables import Row


def build_whole(context: str, text: str, policy: dict[str, str]) -> tuple[str, int]:
    """Context and text as they are sent, and where the text begins.

    >>> build_whole("It rained.", "She left.", {"join": " ", "casing": "keep"})
    ('It rained. She left.', 11)
    """
    before = context + policy["join"] if context else ""
    whole = before + text
    return (whole.lower() if policy["casing"] == "lower" else whole), len(before)


def resolve_text_policy(policy: Policy) -> Policy:
    """The policy under which texts are sent: what stands before and behind them is the server's affair.

    Raises NotPossible where the policy asks for what only token ids can do.
    """
    asked = {
        "--bos": policy.bos not in ("auto", "tokenizer"),
        "--eos": policy.eos != "none",
        "--overflow": policy.overflow != "error",
        "--compat": policy.seam != "offsets",
        "the policy first='refuse'": policy.first != "skip",
    }
    refused = [option for option, given in asked.items() if given]
    if refused:
        raise NotPossible(
            f"This server takes or tells no token ids, so {refused[0]} cannot be kept; name the model's "
            "tokenizer with --tokenizer, or leave it out."
        )
    return policy.but(bos="tokenizer")


def build_text_row(request: str, whole: str, begin: int, reading: Reading) -> Row:
    """One row of TOKENS from a text that the server tokenized; its scored part begins at `begin`.

    Raises BadInput where the tokens cannot be placed in the text.
    """
    for skipped in (0, 1):
        spans = find_spans(whole, reading.tokens[skipped:])
        if spans is not None:
            break
    else:
        raise BadInput(
            f"The tokens that the server made of '{request}' do not make up its text, so they cannot be "
            "placed; name the model's tokenizer with --tokenizer."
        )
    own = [place for place, span in enumerate(spans) if span[1] > begin]
    if not own:
        raise BadInput(f"The text of '{request}' has no token to score; remove it or fill it in.")
    return {
        "request": request,
        "tokens": [reading.tokens[skipped + place] for place in own],
        "start": [max(0, spans[place][0] - begin) for place in own],
        "end": [spans[place][1] - begin for place in own],
        "logprob": [reading.logprobs[skipped + place] for place in own],
    }
