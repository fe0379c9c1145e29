"""Exact tests: the p-value is a rank among targets resampled from the predictions."""
