"""Compiled loops over pairs of rows, on the CPU and on GPUs; imported only where they are used."""
