"""The commands, one module each; `cli/main.py` names them."""
