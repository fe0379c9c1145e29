"""Worlds with known truth, one kind of target a file."""
