"""What somebody who mistyped a name most likely meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(word: object, names: Iterable[object]) -> str:
    """Return a question to put after an error message, or nothing if no name is near.

    >>> did_you_mean("laplase", ["laplace", "fourier"])
    " Did you mean 'laplace'?"
    >>> did_you_mean("gaussian", ["laplace", "fourier"])
    ''
    """
    by_lower = {str(name).lower(): name for name in names}
    near = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.7)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""
