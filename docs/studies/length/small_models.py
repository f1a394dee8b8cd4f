"""The small models of the study: a corpus out of WikiText, and a BERT of random weights, then trained on it.

    python docs/studies/length/small_models.py corpus $FELICITY_DATA/wikitext103/wiki.test.raw.gz corpus.txt
    felicity train ngram corpus.txt -n 3 --casing lower --min-count 2 -o ngram.arpa
    felicity train lstm corpus.txt --min-count 3 --embedding 64 --hidden 128 --epochs 1 -o lstm
    python docs/studies/length/small_models.py masked corpus.txt bert-random 0
    python docs/studies/length/small_models.py masked corpus.txt bert-trained 200

The last number is that of the steps of training. The masked models have four layers of 128 dimensions and a
vocabulary of 4,000 word pieces, so that many words have several tokens.
"""

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY, LENGTH, BATCH, RATE, MASKED = 4000, 48, 32, 1e-3, 0.15
# WikiText writes spaces around marks, and hyphens within words as @-@.
SPACES = (
    (r" @(.)@ ", r"\1"),
    (r" ([.,;:!?)\]%])", r"\1"),
    (r"([(\[$]) ", r"\1"),
    (r" ('s|n't|'re|'ve|'ll|'d|'m)\b", r"\1"),
    (r'" ([^"]*) "', r'"\1"'),
)


def write_corpus(source: Path, target: Path) -> None:
    """Sentences, one per line, with ordinary spaces; headings are left out."""
    lines = []
    with gzip.open(source, "rt", encoding="utf-8") as text:
        for line in map(str.strip, text):
            if line and not line.startswith("="):
                lines += re.split(r"(?<=[.!?]) (?=[A-Z\"])", restore_spaces(line))
    target.write_text("\n".join(line for line in lines if len(line.split()) > 2) + "\n", encoding="utf-8")


def restore_spaces(line: str) -> str:
    """The line as it was printed."""
    for pattern, printed in SPACES:
        line = re.sub(pattern, printed, line)
    return line


def build_tokenizer(lines: list[str]) -> Any:
    """Word pieces of the corpus, in lower case."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name[1:-1].lower()}_token": name for name in SPECIAL},
    )


def train_masked(corpus: Path, folder: Path, steps: int) -> None:
    """Save a BERT after so many steps of training; 0 leaves its random weights."""
    torch.manual_seed(0)
    lines = corpus.read_text(encoding="utf-8").splitlines()
    tokenizer = build_tokenizer(lines)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=128,
    )
    model = BertForMaskedLM(config)
    tokenizer.save_pretrained(folder)
    if steps:
        padded = tokenizer(
            lines, padding="max_length", truncation=True, max_length=LENGTH, return_tensors="pt"
        )
        fit(model, padded["input_ids"], steps)
    model.save_pretrained(folder)


def fit(model: BertForMaskedLM, ids: torch.Tensor, steps: int) -> None:
    """Ordinary masked training: 15% of the tokens, all of them replaced by [MASK]."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps)
    model.train()
    for step in range(steps):
        batch = ids[torch.randint(len(ids), (BATCH,))]
        batch = batch[:, : int((batch != 0).sum(dim=1).max())]
        hidden = (torch.rand(batch.shape) < MASKED) & (batch > SPECIAL.index("[MASK]"))
        labels = batch.masked_fill(~hidden, -100)
        loss = model(
            input_ids=batch.masked_fill(hidden, SPECIAL.index("[MASK]")),
            attention_mask=(batch != 0).long(),
            labels=labels,
        ).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            sys.stderr.write(f"{step} {loss.item():.3f}\n")


if __name__ == "__main__":
    task, source, target, *rest = sys.argv[1:]
    if task == "corpus":
        write_corpus(Path(source), Path(target))
    else:
        train_masked(Path(source), Path(target), int(rest[0]))
