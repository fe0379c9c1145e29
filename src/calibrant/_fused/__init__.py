"""Pair sums compiled for one machine; imported only where they are used."""
