"""Stimuli, by the name of a dataset or from a file, as items."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
