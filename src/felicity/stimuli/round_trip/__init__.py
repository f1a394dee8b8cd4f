"""Sentences degraded by translating them into another language and back (Lau et al. 2020)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
