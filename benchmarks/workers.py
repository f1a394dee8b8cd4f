"""One program under test in a process of its own: reads work as JSON lines, answers scores and seconds.

    python workers.py felicity|minicons|lm-eval MODEL_FOLDER [DTYPE [BEGIN]]

The model is loaded before the first answer, and loading is not counted. Log-probabilities are sums over
the text's tokens, given the context where there is one and the begin token where there is none: the
tokenizer's, or BEGIN for the peers.
"""

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

Scorer = Callable[[list[str], list[str] | None, int], list[float]]


def open_felicity(folder: str, dtype: str, _: str) -> Scorer:
    import felicity as fe

    # Peers put no begin token before a context.
    models = {
        bos: fe.model(folder, policy=fe.Policy(bos=bos), dtype=dtype, cache=False)
        for bos in ("declared", "none")
    }

    def score(texts: list[str], contexts: list[str] | None, _: int) -> list[float]:
        lm = models["none" if contexts else "declared"]
        lm.store = type(lm.store)(None, lm.info)  # nothing is answered from memory
        return lm.score(texts, context=contexts)["lp"].to_list()

    return score


def open_minicons(folder: str, dtype: str, begin: str) -> Scorer:
    from minicons.scorer import IncrementalLMScorer

    model, tokenizer = load(folder, dtype, begin)
    scorer = IncrementalLMScorer(model, "cpu", tokenizer=tokenizer)

    def total(values: object) -> float:
        return values.sum(0).item()  # type: ignore[attr-defined]

    def score(texts: list[str], contexts: list[str] | None, batch: int) -> list[float]:
        length = [len(text) + len(contexts[i] if contexts else "") for i, text in enumerate(texts)]
        order = sorted(range(len(texts)), key=length.__getitem__)
        found = [0.0] * len(texts)
        for begin in range(0, len(order), batch):
            part = order[begin : begin + batch]
            chosen = [texts[i] for i in part]
            if contexts:
                values = scorer.conditional_score([contexts[i] for i in part], chosen, reduction=total)
            else:
                values = scorer.sequence_score(chosen, reduction=total, bos_token=True)
            for i, value in zip(part, values, strict=True):
                found[i] = value
        return found

    return score


def open_lm_eval(folder: str, dtype: str, begin: str) -> Scorer:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model, tokenizer = load(folder, dtype, begin)
    lm = HFLM(pretrained=model, tokenizer=tokenizer, device="cpu")

    def score(texts: list[str], contexts: list[str] | None, batch: int) -> list[float]:
        lm.batch_size_per_gpu = batch
        pairs = [(contexts[i], " " + text) if contexts else ("", text) for i, text in enumerate(texts)]
        requests = [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=0) for pair in pairs]
        return [value for value, _ in lm.loglikelihood(requests, disable_tqdm=True)]

    return score


def load(folder: str, dtype: str, begin: str) -> tuple[object, object]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.bos_token = begin or tokenizer.bos_token
    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval(), tokenizer


OPEN = {
    "felicity": (open_felicity, "felicity"),
    "minicons": (open_minicons, "minicons"),
    "lm-eval": (open_lm_eval, "lm_eval"),
}


def main() -> None:
    name, folder, *rest = sys.argv[1:]
    dtype, begin = [*rest, *["float32", ""][len(rest) :]]
    opener, package = OPEN[name]
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        score = opener(folder, dtype, begin)
        score(["Ready."], None, 1)
        score(["Ready."], ["Wait."], 1)
        print(json.dumps({"version": version(package)}), file=answers, flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            begin, used = time.perf_counter(), time.process_time()
            scores = score(asked["texts"], asked["contexts"], asked["batch"])
            seconds, used = time.perf_counter() - begin, time.process_time() - used
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            answer = {"seconds": seconds, "used": used, "scores": scores, "peak": peak}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
