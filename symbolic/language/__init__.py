"""The expression language: text in, a system of index equations out."""
