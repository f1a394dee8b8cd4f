"""Schema migrations, numbered; the store brings a database up to date when it opens it."""
