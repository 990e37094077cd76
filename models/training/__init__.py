"""How models learn: optimisers, the loop, checkpoints, curves."""
