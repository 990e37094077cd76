"""The documented formulas: forward equations, assumptions, source and claim."""
