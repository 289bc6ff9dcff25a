"""Replace a part of the library while a block runs: for planted faults, and below the noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

_ABSENT = object()  # Stands for an attribute that the object itself does not have.


@contextmanager
def planted(*replacements: tuple[Any, str, Any]) -> Iterator[None]:
    """Run a block with attributes of modules, classes or objects replaced: (owner, name, value).

    Examples
    --------
    >>> import math
    >>> with planted((math, "pi", 3)):
    ...     math.pi
    3
    >>> math.pi > 3
    True
    """
    with ExitStack() as stack:
        for owner, name, value in replacements:
            was = vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else _ABSENT
            if was is _ABSENT:
                stack.callback(delattr, owner, name)
            else:
                stack.callback(setattr, owner, name, was)
            setattr(owner, name, value)
        yield
