"""The report page: its frame, its sections and the wording of numbers."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
