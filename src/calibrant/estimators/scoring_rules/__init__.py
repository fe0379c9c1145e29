"""Proper scores of classes and forecasts, and what they are made of."""
