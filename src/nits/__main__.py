"""`python -m nits`: the command line."""

import sys

from nits.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
