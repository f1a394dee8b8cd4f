"""Whole studies: the rooms in order, one short file each."""
