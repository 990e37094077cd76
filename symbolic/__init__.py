"""What is true: equations, calculus, folding, matrix form, LaTeX, the expression language, the catalogue."""
