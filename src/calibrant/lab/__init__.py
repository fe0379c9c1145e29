"""Worlds with known truth, and the experiments of the literature."""
