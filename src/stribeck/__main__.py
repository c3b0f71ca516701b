"""``python -m stribeck``."""

import sys

from stribeck.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
