"""The report on class probabilities."""
