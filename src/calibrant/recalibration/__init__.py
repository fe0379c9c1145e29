"""Recalibrators: settings that fit a function from predictions to better predictions."""
