"""Is it more than chance? Tests, null bands and intervals for any estimator."""
