"""Mixed models that agree with lme4: linear by REML or ML, binomial by the Laplace approximation."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
