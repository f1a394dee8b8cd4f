"""Factorial designs from a grammar: items in all conditions, in regions, with predictions."""

from felicity.stimuli.designs.design import DESIGNS, Design, read_design_file, read_designs
from felicity.stimuli.designs.generation import DesignGenerator, DesignItems

__all__ = ["DESIGNS", "Design", "DesignGenerator", "DesignItems", "read_design_file", "read_designs"]
