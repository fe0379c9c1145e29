"""Families of numbers given by a few parameters per row."""
