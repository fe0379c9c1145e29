"""Pictures: tables prepared by estimators and tests, drawn in one visual language."""
