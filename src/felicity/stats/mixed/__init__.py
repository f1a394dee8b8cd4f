"""Mixed models to lme4's numbers: linear by REML or ML, binomial by the Laplace approximation."""
