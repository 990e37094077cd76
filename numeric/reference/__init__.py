"""An independent forward: a user's expression straight to torch, for cross-checks only."""
