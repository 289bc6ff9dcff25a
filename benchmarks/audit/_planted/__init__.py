"""Privacy bugs, planted one at a time into the running library: an audit must see every one.

A file for each subject, with a table of faults. A row says what is wrong, where (a dotted name
within the package), how (a value, or a function of the real part and its arguments), and with
which case of the layer that has to see it to begin.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.audit._planted._fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: tuple[Fault, ...] = tuple(
    fault
    for area in iter_modules(__path__)
    if not area.name.startswith("_")
    for fault in import_module(f"{__name__}.{area.name}").FAULTS.listed
)
