"""Items into requests: what is to be scored."""
