"""``python -m dpbayes_sklearn`` runs the demonstration."""

from __future__ import annotations

import sys

from dpbayes_sklearn.demonstration import main

if __name__ == "__main__":
    sys.exit(main())
