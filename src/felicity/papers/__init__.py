"""Published numbers computed again: predictions that others scored, and the printed figures of papers."""
