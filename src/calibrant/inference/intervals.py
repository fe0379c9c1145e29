"""Confidence intervals for any estimator, by resampling rows."""
