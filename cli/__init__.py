"""The command `gradproof`."""

from gradproof.cli.main import main

__all__ = ["main"]
