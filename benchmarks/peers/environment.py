"""Environments for other libraries; diffprivlib 0.6.6 needs an older scikit-learn than ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["diffprivlib_python", "environment"]

DIFFPRIVLIB = "diffprivlib==0.6.6"
INTERPRET = "interpret-core==0.7.8"


def environment(name: str, *packages: str) -> Path:
    """Return the Python of a virtual environment in the user's cache, made on first use."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "dpbayes_sklearn" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    return python


def diffprivlib_python() -> Path | None:
    """Return a Python that has diffprivlib; None, with a message, where it cannot be made."""
    try:
        python = environment("diffprivlib", DIFFPRIVLIB, "scikit-learn==1.6.1")
        subprocess.run([str(python), "-c", "import diffprivlib.models"], check=True)
    except (OSError, subprocess.CalledProcessError):
        print("diffprivlib could not be installed: its figures are left out.")
        return None
    return python
