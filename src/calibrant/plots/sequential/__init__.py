"""Pictures of a stream of predictions."""
