"""Equations between entries: what they are, how they are differentiated, what they are worth at a point."""
