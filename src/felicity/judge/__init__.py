"""Items and scores into judgements."""
