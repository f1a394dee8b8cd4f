"""Direct and metalinguistic judgements of the same pairs (Hu and Levy 2023)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
