"""Models that give a log-probability for every token."""
