"""Privacy bugs, planted one at a time into the running library: an audit must see every one."""

from __future__ import annotations

from benchmarks.audit._planted import data, fitted, noise, sensitivity, spending
from benchmarks.audit._planted._fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: tuple[Fault, ...] = tuple(
    thing
    for area in (noise, sensitivity, data, spending, fitted)
    for thing in vars(area).values()
    if isinstance(thing, Fault)
)
