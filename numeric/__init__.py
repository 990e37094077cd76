"""How it runs: lowering, the NumPy and torch printers, compiled functions, cross-checks."""
