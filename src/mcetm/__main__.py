"""`python -m mcetm` is the command `mcetm`."""

from mcetm.cli import command

if __name__ == "__main__":
    command()
