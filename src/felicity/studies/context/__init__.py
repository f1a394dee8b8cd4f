"""The effect of context on acceptability judgements (Sinha et al. 2023)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
