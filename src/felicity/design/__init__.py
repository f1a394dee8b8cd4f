"""From items to requests: the texts to score, alone or after a context."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
