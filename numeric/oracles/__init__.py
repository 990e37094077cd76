"""Independently written forwards that generated code is checked against."""
