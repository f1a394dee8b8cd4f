"""Texts into token ids under a scoring policy, with character offsets."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
