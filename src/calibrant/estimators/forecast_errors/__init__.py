"""Errors of forecast distributions: PIT values, quantiles, thresholds and spread."""
