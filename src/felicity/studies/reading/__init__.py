"""Reading times, ERPs and cloze: how well surprisal predicts how people read."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
