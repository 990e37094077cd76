"""Measurements side by side with a peer that computes the same."""
