"""Recalibrators made of others: stacks, one class against the rest, trees on top of a map, and the default."""
