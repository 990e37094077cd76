"""MATLAB's spelling, read into the same programs as NumPy's."""
