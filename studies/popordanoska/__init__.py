"""Popordanoska, Sayer & Blaschko (2022): canonical calibration errors by kernels."""
