"""Implicit causality (Huynh et al. 2022): pronouns, continuations, and what people say about them."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
