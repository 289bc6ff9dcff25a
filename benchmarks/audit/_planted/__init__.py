"""Privacy bugs, planted one at a time into the running library: an audit must see every one.

A file for each area; those whose names begin with an underscore hold no faults.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.audit._planted._fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: tuple[Fault, ...] = tuple(
    thing
    for area in iter_modules(__path__)
    if not area.name.startswith("_")
    for thing in vars(import_module(f"{__name__}.{area.name}")).values()
    if isinstance(thing, Fault)
)
