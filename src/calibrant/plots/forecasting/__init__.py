"""Pictures of predictive distributions of numbers."""
