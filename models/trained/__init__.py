"""Trained models, called runs: from a data source to a model in its folder, and back to decoding it."""
