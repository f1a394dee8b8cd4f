"""The run folder, the score store, resuming."""
