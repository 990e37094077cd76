"""Passes: from system to system before lowering, from program to program after it."""
