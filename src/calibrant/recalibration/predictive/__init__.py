"""Recalibrators of predictive distributions of numbers, vectors and ensembles."""
