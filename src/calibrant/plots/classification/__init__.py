"""Pictures of class probabilities."""
