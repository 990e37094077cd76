"""Derivations: gradients, Jacobians, Hessians and products with them, with every step logged and checked."""
