"""Batches of predictive distributions, one family a file."""
