"""What every room knows: schemas, policy, registries, errors, ids and units."""
