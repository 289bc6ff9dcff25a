"""Environments for other libraries; diffprivlib 0.6.6 needs an older scikit-learn than ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["diffprivlib_python", "environment", "interpret_python"]

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
    packages = (DIFFPRIVLIB, "scikit-learn==1.6.1")
    return _python("diffprivlib", "diffprivlib.models", *packages)


def interpret_python() -> Path | None:
    """Return a Python that has DP-EBM; None, with a message, where it cannot be made."""
    return _python("interpret", "interpret.privacy", INTERPRET)


def _python(name: str, module: str, *packages: str) -> Path | None:
    try:
        python = environment(name, *packages)
        subprocess.run([str(python), "-c", f"import {module}"], check=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"{packages[0]} could not be installed: its figures are left out.")
        return None
    return python
