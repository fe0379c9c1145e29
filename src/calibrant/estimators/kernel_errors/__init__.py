"""Kernel calibration errors of any predictive distribution: SKCE, KCE, MMCE and UCME."""
