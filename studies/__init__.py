"""Published experiments and our own, run from a checkout: ``python -m studies NAME``."""
