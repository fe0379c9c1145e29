"""Pictures that set one thing beside another: models, maps, estimators, tests, outcomes and predictions."""
