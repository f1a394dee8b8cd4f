"""Larger probes (Shivagunde et al. 2023): cloze sets and their extensions, models compared at both sizes."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
