"""Numerical methods that several packages share, one a file."""
