"""Formulas as text and LaTeX: by indices, and as linear algebra where it is that."""
