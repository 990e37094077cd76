"""From index equations to array operations, and their order."""
