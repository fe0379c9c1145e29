"""Errors along the score without bins: smoothed, cumulative, and distances from fitted curves."""
