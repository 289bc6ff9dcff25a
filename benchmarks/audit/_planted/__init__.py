"""Privacy bugs, planted one at a time into the running library: an audit must see every one."""

from __future__ import annotations

from benchmarks.audit._planted import (
    composition,
    data,
    elsewhere,
    fitted,
    gaussian,
    laws,
    noise,
    parts,
    preparing,
    reading,
    regressing,
    searching,
    sensitivity,
    spending,
    units,
)
from benchmarks.audit._planted._fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: tuple[Fault, ...] = tuple(
    thing
    for area in (
        *(noise, laws, gaussian, sensitivity, data, reading, preparing),
        *(spending, composition, searching, fitted, units, parts, regressing, elsewhere),
    )
    for thing in vars(area).values()
    if isinstance(thing, Fault)
)
