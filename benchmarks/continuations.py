"""Continuing the prompts of the implicit-causality study, beside transformers' generate one prompt at a time.

    python benchmarks/continuations.py              # all 6,888 prompts
    python benchmarks/continuations.py 512          # fewer

Both continue greedily, to at most 50 tokens with the prompt, and stop at the first full stop. `generate` is
timed on some of the prompts, spread over all; texts are compared on these. Needs $FELICITY_DATA. Writes a
section of RESULTS.md.
"""

import sys
import time
from typing import Any

import report
from felicity.core.engine import Sampling
from felicity.core.policy import Policy
from felicity.run import open_model
from felicity.studies.causality import read_stimuli_set
from felicity.studies.causality.settings import CausalitySettings

ALONE = 40
PAPER_SAMPLING = CausalitySettings().sampling or Sampling()


def main() -> None:
    """Write a section of RESULTS.md."""
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else None
    prompts = read_stimuli_set("implicit_causality").rows["prompt"].to_list()
    if asked:
        prompts = prompts[:: max(1, len(prompts) // asked)][:asked]
    lm = open_model("smollm2", policy=Policy(bos="declared"), cache=False)
    lm.generate(prompts[:1], tokens=2)
    clock = time.perf_counter()
    found = lm.generate_all(prompts, sampling=PAPER_SAMPLING)
    ours = len(prompts) / (time.perf_counter() - clock)
    some = list(range(0, len(prompts), max(1, len(prompts) // ALONE)))[:ALONE]
    clock = time.perf_counter()
    texts = [generate_alone(lm.engine, prompts[place], PAPER_SAMPLING) for place in some]
    theirs = len(some) / (time.perf_counter() - clock)
    equal = sum(found["continuation"][place] == text for place, text in zip(some, texts, strict=True))
    lines = [
        f"{len(prompts):,} prompts, {int(found['n_tokens'].sum()):,} tokens written; `generate` one prompt "
        f"at a time on {len(some)} of them, stopping at the full stop as well.",
        "",
        "| how | prompts a second | times as fast |",
        "|---|---|---|",
        f"| felicity | {ours:.2f} | {ours / theirs:.1f} |",
        f"| `generate`, one at a time | {theirs:.2f} | 1 |",
        "",
        f"Texts are equal on {equal} of {len(some)}.",
    ]
    print("\n".join(lines), flush=True)
    report.write_section("Continuations of prompts", lines)


def generate_alone(engine: Any, prompt: str, sampling: Sampling) -> str:
    """One prompt continued by transformers' generate, cut at the first full stop."""
    import torch

    tokenizer = engine.encoder.tokenizer
    ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]])
    with torch.inference_mode():
        output = engine.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_length=sampling.whole,
            do_sample=False,
            pad_token_id=0,
            stop_strings=list(sampling.stop),
            tokenizer=tokenizer,
        )
    text = tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True)
    return str(text.partition(sampling.stop[0])[0])


if __name__ == "__main__":
    main()
