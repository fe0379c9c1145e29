"""Widmann, Lindsten & Zachariah (2021): calibration tests in all probabilistic models."""
