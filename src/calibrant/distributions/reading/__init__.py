"""From what the caller gave to predictions of ours, those of other libraries included."""
