"""Array operations as NumPy or torch code."""
