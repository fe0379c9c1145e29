"""Streams and data in parts: small states that are updated, merged and finished, of every estimator of linear cost."""
