"""Token log-probabilities into acceptability measures."""
