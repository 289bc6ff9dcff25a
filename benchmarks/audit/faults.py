"""Planted faults: with each bug in the library in turn, the layer that has to see it sees it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmarks.audit._cases import Row, first_finding
from benchmarks.audit._layers import LAYERS
from benchmarks.audit._planted import FAULTS, Fault
from dpbayes_sklearn._presenting import progress

WANTED = 100
CRASHED = "the layer itself fails with"


def sees(layer: str, first: str = "") -> str | None:
    """Return the first thing that a layer finds wrong, or None.

    The cases with ``first`` in their name come first.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return first_finding(LAYERS[layer](), first)
        except Exception as error:  # nobody could overlook that
            return f"{CRASHED} {type(error).__name__}: {error}"


def finding(fault: Fault) -> str | None:
    """Return what the layer of a fault says about it; None if it does not see it."""
    with fault.planted():
        what = sees(fault.seen_by, fault.shows_in)
    return None if what is None or what.startswith(CRASHED) else what


def run(scale: float) -> Iterator[Row]:
    """Try the layers without any fault, then with each of them the layer that has to see it."""
    for layer in LAYERS:
        what = sees(layer)
        yield Row(f"none planted: {layer}", what or "nothing found", "nothing", not what)
    tried = FAULTS if scale >= 1 else FAULTS[:: max(1, round(0.2 / scale))]
    caught = 0
    for fault in progress(tried, "faults"):
        what = finding(fault)
        caught += what is not None
        figure, must = (what or "nothing")[:60], f"seen by {fault.seen_by}"
        yield Row(f"{fault}"[:90], figure, must, what is not None)
    figure, enough = f"{caught} of {len(tried)}", len(FAULTS) >= WANTED
    must = f"all, of {WANTED} or more"
    yield Row("caught", figure, must, caught == len(tried) and enough)
