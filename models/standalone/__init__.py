"""One file that trains a model and needs nothing of gradproof."""
