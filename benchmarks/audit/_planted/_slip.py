"""A small slip in the library, as functions of what the wrong parts were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.audit._planted._fault import Fault

Change = tuple[Any, str, Callable[[Any], Any]]

__all__ = ["constant", "slip", "slip_of_parts", "times"]


def slip(
    name: str, layer: str, case: str, *changes: tuple[Any, str, Callable[[Any], Any]]
) -> Fault:
    """Return a fault that replaces attributes by functions of what they were."""

    def replacements() -> Iterator[tuple[Any, str, Any]]:
        for owner, attribute, change in changes:
            yield owner, attribute, change(vars(owner)[attribute])

    return Fault("elsewhere", name, layer, replacements, case)


def slip_of_parts(name: str, case: str, *changes: Change) -> Fault:
    """Return a fault that shows where parts are added up."""
    return slip(name, "parts", case, *changes)


def times(factor: Any) -> Callable[[Any], Any]:
    """Multiply what a function returns."""
    return lambda real: lambda *args, **options: factor * real(*args, **options)


def constant(value: Any) -> Callable[[Any], Any]:
    """Replace a number."""
    return lambda _: value
