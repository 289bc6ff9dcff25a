"""A privacy bug as a row of a table: where it sits, what it does, and which layer has to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from importlib import import_module
from inspect import getattr_static
from typing import Any, NamedTuple

from benchmarks.audit.tools.recording import planted

__all__ = ["Fault", "Faults", "at", "changed", "returns", "times", "uncached", "with_cost"]


@dataclass(frozen=True)
class Fault:
    """A bug, where it sits, and the layer that the tests ask to see it.

    ``shows_in`` is part of the name of a case of that layer that soon sees it: it is tried first.
    """

    area: str
    name: str
    seen_by: str
    shows_in: str
    changes: tuple[tuple[str, Any], ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Run a block with the bug in the library."""
        with planted(*(_replacement(*change) for change in self.changes)):
            yield

    def __str__(self) -> str:
        return f"{self.area}: {self.name}"


def _replacement(place: str, how: Any) -> tuple[Any, str, Any]:
    """Return (owner, attribute, wrong part) of a dotted name within the package."""
    *path, name = place.split(".")
    for end in range(len(path), -1, -1):
        try:
            owner: Any = import_module(".".join(["dpbayes_sklearn", *path[:end]]))
        except ModuleNotFoundError:
            continue
        for attribute in path[end:]:
            owner = getattr(owner, attribute)
        return owner, name, _wrong(getattr_static(owner, name), how)
    raise AttributeError(place)


def _wrong(real: Any, how: Any) -> Any:
    """Return what stands in for a part: ``how(real, ...)``, or ``how`` if that is a value."""
    if not callable(how):
        return how
    part, kind = real, None
    if isinstance(real, property):
        part, kind = real.fget, property
    elif isinstance(real, cached_property):
        part, kind = real.func, property
    elif isinstance(real, staticmethod | classmethod):
        part, kind = real.__func__, type(real)
    elif not callable(real):  # another descriptor of a method

        def part(self: Any, *args: Any, **options: Any) -> Any:
            return real.__get__(self, type(self))(*args, **options)

    def wrong(*args: Any, **options: Any) -> Any:
        return how(part, *args, **options)

    return wrong if kind is None else kind(wrong)


class FaultRow(NamedTuple):
    """The rest of a row: the case that is tried first, and what is changed where."""

    case: str
    changes: tuple[tuple[str, Any], ...]

    def also(self, places: str | tuple[str, ...], how: Any) -> FaultRow:
        """Return a row that changes more places."""
        return FaultRow(self.case, self.changes + at(places, how).changes)


def at(places: str | tuple[str, ...], how: Any, case: str = "") -> FaultRow:
    """Return a row: ``how`` is called with the real part and its arguments, or is a wrong value."""
    names = (places,) if isinstance(places, str) else places
    return FaultRow(case, tuple((name, how) for name in names))


class Faults:
    """The faults of one subject."""

    def __init__(self, area: str) -> None:
        self.area = area
        self.listed: list[Fault] = []

    def rows(self, layer: str, rows: Mapping[str, FaultRow]) -> None:
        """Add faults that a layer has to see: what is wrong, and where."""
        self.listed += [Fault(self.area, name, layer, *row) for name, row in rows.items()]

    def row(
        self, layer: str, places: str | tuple[str, ...], case: str = ""
    ) -> Callable[[Callable[..., Any]], None]:
        """Add a fault whose docstring says what is wrong, for functions of several lines."""

        def add(how: Callable[..., Any]) -> None:
            name = " ".join((how.__doc__ or "").split()).removesuffix(".")
            self.rows(layer, {name: at(places, how, case)})

        return add


def times(factor: Any) -> Callable[..., Any]:
    """Multiply what a function returns."""
    return lambda real, *args, **options: factor * real(*args, **options)


def returns(value: Any) -> Callable[..., Any]:
    """Return a value whatever is asked."""
    return lambda *_, **__: value


def changed(**fields: Any) -> Callable[..., Any]:
    """Change fields of what a function returns, each by a function of it or to a value."""

    def wrong(real: Any, *args: Any, **options: Any) -> Any:
        it = real(*args, **options)
        new = {f: by(getattr(it, f)) if callable(by) else by for f, by in fields.items()}
        return replace(it, **new) if is_dataclass(it) else it._replace(**new)

    return wrong


def keeps(**attributes: Any) -> Callable[..., Any]:
    """Keep functions of what a method returns as attributes of its object."""

    def wrong(real: Any, self: Any, *args: Any, **options: Any) -> Any:
        found = real(self, *args, **options)
        for name, of in attributes.items():
            setattr(self, name, of(found))
        return found

    return wrong


def uncached(real: Any, *args: Any, **options: Any) -> Any:
    """Compute again what a cache remembers from before the fault, or would remember after it."""
    return real.__wrapped__(*args, **options)


def with_cost(plan: Any, **fields: Any) -> Any:
    """Return a plan that claims another cost."""
    claimed = copy(plan)
    object.__setattr__(claimed, "cost", plan.cost._replace(**fields))
    return claimed
