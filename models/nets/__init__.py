"""Networks as wirings of generated blocks: their equations, their wiring, their parameters."""
