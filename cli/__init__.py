"""The command `gradproof`."""
