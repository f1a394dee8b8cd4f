"""Contexts put before stimuli: where their sentences come from, how they grow, what is then to be scored."""
