"""What context does to acceptability (Sinha et al. 2023): from judgements in context to its tables."""
