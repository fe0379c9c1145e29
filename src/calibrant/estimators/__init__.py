"""Estimators of calibration error and proper scores, one concept a file."""
