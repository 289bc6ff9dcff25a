"""Planted faults: which layers see which bug, with each bug in the library in turn."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.audit._layers import LAYERS
from benchmarks.audit._planted import FAULTS, Fault
from benchmarks.audit._table import Row, versions
from dpbayes_sklearn._progress import progress

__all__ = ["layers_that_see", "run", "sees"]


def sees(layer: str) -> str | None:
    """Return the first thing that a layer finds wrong, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(islice(LAYERS[layer](), 1), None)


def layers_that_see(fault: Fault) -> dict[str, str]:
    """Return the layers that find something with the fault in the library, and what."""
    with fault.planted():
        found = {layer: sees(layer) for layer in LAYERS}
    return {layer: what for layer, what in found.items() if what is not None}


def run(scale: float) -> Iterator[Row]:
    """Try the layers without any fault, then with each of them."""
    for layer in LAYERS:
        what = sees(layer)
        yield Row("faults", f"none planted: {layer}", what or "nothing found", "nothing", not what)
    tried = FAULTS if scale >= 1 else FAULTS[:: max(1, round(0.2 / scale))]
    caught = 0
    for fault in progress(tried, "faults"):
        seen = layers_that_see(fault)
        caught += bool(seen)
        yield Row("faults", f"{fault}"[:90], ", ".join(seen) or "nobody", "seen", bool(seen))
    yield Row("faults", "caught", f"{caught} of {len(tried)}", "all", caught == len(tried))


def matrix() -> str:
    """Return the table of faults and layers for the documentation."""
    lines = [f"| | fault | {' | '.join(LAYERS)} |", "|---|---|" + "---|" * len(LAYERS)]
    totals = dict.fromkeys(LAYERS, 0)
    for fault in progress(FAULTS, "faults"):
        seen = layers_that_see(fault)
        for layer in seen:
            totals[layer] += 1
        marks = " | ".join("●" if layer in seen else "" for layer in LAYERS)
        lines.append(f"| {fault.area} | {fault.name} | {marks} |")
    sums = " | ".join(f"{totals[layer]}" for layer in LAYERS)
    lines.append(f"| | **{len(FAULTS)} faults, seen by** | {sums} |")
    return "\n".join([*lines, "", versions(), ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the Markdown file to write")
    parser.parse_args().file.write_text(matrix())
