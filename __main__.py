"""`python -m gradproof` is the command `gradproof`."""

from gradproof.cli import main

if __name__ == "__main__":
    main()
