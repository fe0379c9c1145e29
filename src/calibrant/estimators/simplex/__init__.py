"""Errors of whole prediction vectors, by kernel regression on the simplex."""
