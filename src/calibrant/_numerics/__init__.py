"""Numerical methods that several packages share, one per file."""
