"""The same models by torch: their blocks printed for it, and peers written independently to compare with."""
