"""Errors over bins of the score, or over cells of whole prediction vectors."""
