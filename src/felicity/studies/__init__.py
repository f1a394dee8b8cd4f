"""Whole studies: plan, analysis and report sections of each in one package."""
