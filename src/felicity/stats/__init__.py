"""Estimates, tests and fitted models: frames in, frames out.

>>> import polars as pl
>>> from felicity import stats
>>> stats.mcnemar_p(12, 4) < 0.1
True
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
