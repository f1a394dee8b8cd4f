"""Small random models of every shape that felicity scores, with tokenizers made on the spot."""

import warnings
from pathlib import Path
from typing import Any

CORPUS = [
    "The cats annoy Tim.",
    "The cat annoys Tim.",
    "No dog has ever barked here.",
    "She saw herself in the mirror.",
    "A robin is a bird and an oak is a tree.",
    "Nobody who saw the parade has forgotten it.",
]
SENTENCES = [
    "The cats annoy Tim.",
    "The cats annoys Tim.",
    "Nobody barked.",
    "A robin is a tree, isn't it?",
    "An unforgettable mirror annoyed everybody here.",
]
CONTEXT = "She saw the dog."
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
POSITIONS = 64
WIDE = 0.3  # standard deviation of the weights: large enough for probabilities to differ

BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def make_wordpiece() -> Any:
    """A tokenizer as BERT's: [CLS] text [SEP], words cut into pieces with ##."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=BERT_SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def make_bytelevel() -> Any:
    """A tokenizer as RoBERTa's and BART's: <s> text </s>, bytes, the mask swallows a space before it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=[
            *ROBERTA_SPECIAL[:4],
            AddedToken("<mask>", lstrip=True, normalized=False, special=True),
        ],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token=AddedToken("<mask>", lstrip=True, normalized=False, special=True),
    )


def make_unigram(special: list[str], template: str, **names: str) -> Any:
    """A tokenizer as SentencePiece's, with `special` tokens first and `template` around a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=110, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in special]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", **names)


def make_albert_tokenizer() -> Any:
    """A SentencePiece tokenizer with BERT's frame."""
    return make_unigram(
        ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        "[CLS] $A [SEP]",
        pad_token="<pad>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def save_random(config: Any, auto: str, tokenizer: Any, folder: Path, *, seed: int = 1) -> Path:
    """A random model of this configuration with its tokenizer, in a folder."""
    import torch
    import transformers

    torch.manual_seed(seed)
    with warnings.catch_warnings():
        # DeBERTa's file in transformers compiles some functions in a way that torch is giving up.
        warnings.simplefilter("ignore", DeprecationWarning)
        model = getattr(transformers, auto).from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, WIDE)
            elif "norm" not in name.lower():
                weight.normal_(0, WIDE / 3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_masked(shape: str, folder: Path) -> Path:
    """A random masked model: bert, roberta, albert, distilbert, electra, modernbert, deberta, deberta-v2.

    Further xlm, and models that see the padding of a batch: fnet, funnel, big_bird, convbert, yoso and
    mobilebert.
    """
    import transformers as t

    tokenizer = {
        "roberta": make_bytelevel,
        "modernbert": make_bytelevel,
        "albert": make_albert_tokenizer,
    }.get(shape, make_wordpiece)()
    common = {"vocab_size": len(tokenizer), "max_position_embeddings": POSITIONS}
    common |= {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": 0, "eos_token_id": 2}
    distances = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    configs = {
        "bert": lambda: t.BertConfig(**SMALL, **common),
        "roberta": lambda: t.RobertaConfig(**SMALL, **common),
        "albert": lambda: t.AlbertConfig(**SMALL, **common, embedding_size=16),
        "distilbert": lambda: t.DistilBertConfig(dim=32, n_layers=2, n_heads=2, hidden_dim=48, **common),
        "electra": lambda: t.ElectraConfig(**SMALL, **common, embedding_size=16),
        "modernbert": lambda: t.ModernBertConfig(
            **SMALL, **common, cls_token_id=0, sep_token_id=2, local_attention=8, reference_compile=False
        ),
        "xlm": lambda: t.XLMConfig(emb_dim=32, n_layers=2, n_heads=2, pad_index=0, **common),
        "fnet": lambda: t.FNetConfig(
            hidden_size=32, num_hidden_layers=2, intermediate_size=48, **common | {"eos_token_id": 3}
        ),
        "funnel": lambda: t.FunnelConfig(
            vocab_size=len(tokenizer),
            block_sizes=[1, 1],
            num_decoder_layers=1,
            d_model=32,
            n_head=2,
            d_head=16,
            d_inner=48,
        ),
        # Sparse attention from 29 tokens on.
        "big_bird": lambda: t.BigBirdConfig(**SMALL, **common, block_size=4, num_random_blocks=1),
        "convbert": lambda: t.ConvBertConfig(
            **SMALL, **common, embedding_size=32, conv_kernel_size=3, head_ratio=1
        ),
        "yoso": lambda: t.YosoConfig(**SMALL, **common),
        "mobilebert": lambda: t.MobileBertConfig(
            **SMALL, **common, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16
        ),
        "deberta": lambda: t.DebertaConfig(**SMALL, **common, **distances),
        "deberta-v2": lambda: t.DebertaV2Config(**SMALL, **common, **distances),
    }
    return save_random(configs[shape](), "AutoModelForMaskedLM", tokenizer, folder)


def make_seq2seq(shape: str, folder: Path) -> Path:
    """A random encoder-decoder: t5, t5-untied (an output layer of its own, as in T5 1.1), bart.

    Further bigbird_pegasus, whose attention depends on the longest source of a batch.
    """
    import torch
    import transformers as t

    if shape in ("bart", "bigbird_pegasus"):
        tokenizer = make_bytelevel()
        sparse = {"block_size": 4, "num_random_blocks": 1} if shape == "bigbird_pegasus" else {}
        config = (t.BigBirdPegasusConfig if sparse else t.BartConfig)(
            **sparse,
            vocab_size=len(tokenizer),
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            max_position_embeddings=POSITIONS,
            decoder_start_token_id=2,
            forced_bos_token_id=None,
            forced_eos_token_id=None,
        )
        return save_random(config, "AutoModelForSeq2SeqLM", tokenizer, folder)
    sentinels = [f"<extra_id_{i}>" for i in range(3)]
    names = {"pad_token": "<pad>", "eos_token": "</s>"}
    tokenizer = make_unigram(["<pad>", "</s>", "<unk>", *sentinels], "$A </s>", **names)
    config = t.T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=16,
        d_ff=48,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        tie_word_embeddings=shape == "t5",
    )
    save_random(config, "AutoModelForSeq2SeqLM", tokenizer, folder)
    if shape == "t5-untied":
        from safetensors.torch import load_file, save_file

        weights = load_file(folder / "model.safetensors")
        torch.manual_seed(9)
        weights["lm_head.weight"] = torch.randn(len(tokenizer), 32) * WIDE
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def make_xlnet(folder: Path) -> Path:
    """A random XLNet."""
    import transformers as t

    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    tokenizer = make_unigram(special, "$A <sep> <cls>", **names)
    config = t.XLNetConfig(
        vocab_size=len(tokenizer), d_model=32, n_layer=2, n_head=2, d_inner=48, pad_token_id=5
    )
    return save_random(config, "AutoModelForCausalLM", tokenizer, folder)
