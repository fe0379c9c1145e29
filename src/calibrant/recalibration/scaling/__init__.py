"""Recalibrators with a few parameters: temperature, Platt, beta, vector, matrix and Dirichlet scaling."""
