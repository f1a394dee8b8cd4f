"""Getting a model: from the value of `-m` to a local folder."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
