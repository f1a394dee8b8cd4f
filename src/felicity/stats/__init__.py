"""Estimates, tests and fitted models: frames in, frames out."""
