"""Predictions given by values instead of parameters: members, quantiles, bins."""
