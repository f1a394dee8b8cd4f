"""Human acceptability in context (Lau et al. 2020): people's ratings beside every model and measure."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
