"""The report on forecasts of numbers, counts and vectors."""
