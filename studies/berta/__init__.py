"""Berta et al. (2026): variational calibration errors."""
