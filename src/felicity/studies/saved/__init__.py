"""Finished studies of any kind, by their folder: reports written again without a model."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
