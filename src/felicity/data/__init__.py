"""Stimuli by name or from a file, as items."""
