"""Privacy bugs, planted one at a time into the running library: an audit must see every one."""

from __future__ import annotations

from benchmarks.audit._planted import (
    budgets,
    composition,
    data,
    fitted,
    gaussian,
    laws,
    noise,
    order,
    preparing,
    reading,
    rehearsing,
    scopes,
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
        *(spending, composition, scopes, searching, rehearsing, fitted, units, budgets, order),
    )
    for thing in vars(area).values()
    if isinstance(thing, Fault)
)
