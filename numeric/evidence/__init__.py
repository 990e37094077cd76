"""Numbers for catalogue entries, computed with the generated code."""
