"""The command line: one module per command; it calls the public API and computes nothing."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
