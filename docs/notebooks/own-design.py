# %% [markdown]
# # A 2 x 2 design of your own
#
# Four sentences per item, two factors, one region of interest: from the stimuli to a mixed model.

# %%
import altair
import polars as pl

import felicity as fe

altair.renderers.enable("svg")

# %% [markdown]
# ## The stimuli
#
# One sentence per row. Bars separate regions; every factor is a column. In the ambiguous condition without
# a comma, *the deer* is first read as the object of *hunted*, and *ran* shows that it is not.

# %%
garden = pl.read_csv("../how-to/garden.csv")
garden.head(4)

# %% [markdown]
# ## Surprisal of regions

# %%
regions = fe.surprisal(garden, "smollm2", by="region")
regions.filter(pl.col("item") == 1).select("ambiguity", "comma", "place", "region", "surprisal")

# %% [markdown]
# ## Means and the interaction
#
# Region 3 is the disambiguating verb. The interaction is a difference of differences within items.

# %%
means = fe.means(regions, x="comma", by="ambiguity", where=["place=3"])
means

# %% [markdown]
# ## A mixed model
#
# Both factors are coded as sums, so the interaction is a quarter of the difference of differences. With
# four items only an intercept can vary between items.

# %%
verb = regions.filter(pl.col("place") == 3)
fit = fe.fit("surprisal ~ ambiguity * comma + (1|item)", verb, contrasts={"ambiguity": "sum", "comma": "sum"})
fit

# %% [markdown]
# ## How many items would be enough?
#
# Power of a comparison of two models, one of which is right on 8% more of the items:

# %%
fe.power(only_first=0.14, only_second=0.06, items=200)
