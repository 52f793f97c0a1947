"""`python -m mcetm` is the command `mcetm`."""

import sys

from mcetm.cli import main

if __name__ == "__main__":
    sys.exit(main())
