# %% [markdown]
# # First steps
#
# felicity asks a language model which sentences it finds acceptable. This notebook scores a pair of
# sentences, looks at single tokens, judges a set of minimal pairs and tests two measures against each
# other. The model is SmolLM2-135M-Instruct, which felicity downloads on first use.

# %%
import altair

import felicity as fe

altair.renderers.enable("svg")

# %% [markdown]
# ## A pair of sentences
#
# `fe.judge` compares two sentences by their log-probability. Log-probabilities are in nats;
# `verdict.sentences` has them token by token, and `verdict.stable` says whether the margin is larger than
# numerical noise.

# %%
verdict = fe.judge("The cats annoy Tim.", "The cats annoys Tim.")
verdict

# %% [markdown]
# ## Surprisal, word by word
#
# A model is opened once and can then be asked for sentences, words or tokens. Surprisal is in bits; a
# word's is the sum over its tokens.

# %%
lm = fe.model("smollm2")
words = fe.surprisal(
    ["While the man hunted the deer ran away.", "While the man hunted, the deer ran away."], lm
)
words.select("row", "place", "word", "surprisal")

# %% [markdown]
# ## A set of minimal pairs
#
# `starter` is felicity's own set of minimal pairs. Ten pairs of each suite are enough for a first look; the
# interval is over suites.

# %%
run = fe.run("starter", lm, sample=10, measures=["lp", "pen_lp"])["smollm2"]
run

# %% [markdown]
# By phenomenon, with 95% intervals:

# %%
run.accuracy(by="phenomenon").filter(measure="lp").select("name", "n", "accuracy", "low", "high")

# %% [markdown]
# ## Is one measure better than the other?
#
# The same pairs were judged by log-probability (`lp`) and by a length-penalized one (`pen_lp`). The test is
# paired.

# %%
fe.compare(run)

# %% [markdown]
# Everything so far is a polars frame or shows one; `run["tokens"]`, `run["scores"]` and `run["judgements"]`
# are the tables that the accuracies were computed from.
