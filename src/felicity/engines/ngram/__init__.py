"""n-gram models: estimated here, or read from ARPA and KenLM files."""
