"""Predictions made of other predictions: mixtures, and families kept within a range."""
