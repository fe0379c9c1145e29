"""Roelofs, Cain, Shlens & Mozer (2022): bias of binned calibration errors."""
