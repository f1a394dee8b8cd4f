"""What every room knows: schemas, policy, registries, errors, files, ids and units."""
