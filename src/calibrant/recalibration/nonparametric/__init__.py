"""Recalibrators of any shape: isotonic regression, bins, splines, kernels on the simplex."""
