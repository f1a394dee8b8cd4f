# %% [markdown]
# # People beside models
#
# Ratings of people and scores of a model for the same sentences: how closely do they agree, and how closely
# could they? The ratings here are drawn at random around a made-up acceptability, so the numbers mean
# nothing; put your own table in their place.

# %%
import altair
import numpy as np
import polars as pl

import felicity as fe

altair.renderers.enable("svg")

# %% [markdown]
# ## Ratings
#
# One row per rating: who rated which sentence, and how. Twelve raters use a scale from 1 to 4.

# %%
pairs = fe.pairs(
    ["causative", "passive_1", "regular_plural_subject_verb_agreement_1"], n=8, match="length"
).pairs
draw = np.random.default_rng(1)
rows = [
    {
        "rater": rater,
        "item": f"{row['suite']}/{row['item']}",
        "condition": side,
        "text": row[side],
        "rating": rating,
    }
    for row in pairs.iter_rows(named=True)
    for side, center in (("good", 3.4), ("bad", 1.9))
    for rater in range(12)
    for rating in [int(np.clip(round(draw.normal(center, 0.8)), 1, 4))]
]
ratings = pl.DataFrame(rows)
ratings.head(4)

# %% [markdown]
# ## Agreement of model and people
#
# Every measure is correlated with the mean ratings. Two upper bounds say how well one rater predicts the
# others (UB1) and how well one half of the raters predicts the other half (UB2). Ratings in a column
# `simulated` are marked wherever they are shown.

# %%
study = fe.acceptability(
    ratings.with_columns(simulated=True), models="smollm2", measures=["lp", "mean_lp", "pen_lp"]
)
study

# %% [markdown]
# The tables of a study are frames, and its figures altair charts:

# %%
study["correlations"].head()

# %% [markdown]
# ## A mixed model of the ratings
#
# Ratings are ordinal, so the model is a cumulative one, as `clmm` of R's package ordinal fits it. Raters
# and items vary.

# %%
fe.fit("rating ~ condition + (1|rater) + (1|item)", ratings, family="cumulative")
