"""Checking a formula that somebody wrote: the claim beside the derivation, and the verdict."""
