"""Study 1, what context does to acceptability (Sinha et al. 2023): judgements in context, and their tables."""
