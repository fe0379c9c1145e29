"""Calibration watched while predictions come in: tests that may be looked at after every row."""
