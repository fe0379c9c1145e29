"""Tests of the kernel calibration error that need no resampled targets."""
