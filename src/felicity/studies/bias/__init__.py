"""Token-length bias in minimal pairs (Ueda et al. 2024)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
