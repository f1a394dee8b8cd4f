"""felicity: what a language model finds acceptable, measured and defended."""
