"""Families of classes, labels and counts."""
