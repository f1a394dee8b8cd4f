"""Minimal pairs about the weather, and what one can do with them."""
