"""A privacy bug as replacements of parts of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

from dpbayes_sklearn.audit.planting import planted

__all__ = ["Fault", "fault", "with_cost"]

Replacements = Iterator[tuple[Any, str, Any]]


@dataclass(frozen=True)
class Fault:
    """A bug, where it sits, and the layer that the tests ask to see it.

    ``shows_in`` is part of the name of a case of that layer that soon sees it: it is tried first.
    """

    area: str
    name: str
    seen_by: str
    replacements: Callable[[], Replacements]
    shows_in: str = ""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Run a block with the bug in the library."""
        with planted(*self.replacements()):
            yield

    def __str__(self) -> str:
        return f"{self.area}: {self.name}"


def fault(
    area: str, seen_by: str, name: str, shows_in: str = ""
) -> Callable[[Callable[[], Replacements]], Fault]:
    """Make a fault of a generator of (owner, attribute, wrong part)."""
    return lambda replacements: Fault(area, name, seen_by, replacements, shows_in)


def with_cost(plan: Any, cost: Any) -> Any:
    """Return a plan that claims another cost."""
    claimed = copy(plan)
    object.__setattr__(claimed, "cost", cost)
    return claimed
