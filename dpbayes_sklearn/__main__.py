"""``python -m dpbayes_sklearn`` is the command line; without a command, the demonstration."""

from __future__ import annotations

import sys

from dpbayes_sklearn.command_line.console import main

if __name__ == "__main__":
    sys.exit(main())
