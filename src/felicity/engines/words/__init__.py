"""Models whose tokens are words: how a text is cut, and which words a model knows."""
