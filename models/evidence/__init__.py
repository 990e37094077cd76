"""Numbers for catalogue entries that need the models."""
