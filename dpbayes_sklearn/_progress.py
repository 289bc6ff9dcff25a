"""A progress bar for long operations: that of tqdm if it is installed, otherwise none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["progress"]

T = TypeVar("T")


def progress(
    steps: Iterable[T],
    description: str = "",
    *,
    total: int | None = None,
    verbose: bool = True,
    delay: float = 0.0,
) -> Iterator[T]:
    """Yield the steps one by one, with a progress bar on standard error.

    Parameters
    ----------
    steps : iterable
        The steps; a lazy iterator is possible, such as the results of joblib.
    description : str, default=""
        Text in front of the bar.
    total : int, optional
        Number of steps, if they have no length.
    verbose : bool, default=True
        Whether to show the bar. It is not shown without tqdm, or if standard error is not a
        terminal.
    delay : float, default=0.0
        Seconds before the bar is shown, for operations that are usually short.

    Examples
    --------
    >>> [step**2 for step in progress(range(3), "squares")]
    [0, 1, 4]
    """
    if verbose:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            name, options = description or None, {"leave": False, "disable": None, "delay": delay}
            steps = tqdm(steps, desc=name, total=total, **options)
    yield from steps
