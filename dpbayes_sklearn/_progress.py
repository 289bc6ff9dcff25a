"""A progress bar on long work: tqdm's if it is installed, otherwise none."""

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
    """Yield the steps one by one, with a bar on standard error that says how far they are.

    Parameters
    ----------
    steps : iterable
        What there is to do; a lazy iterator is fine, such as the results of joblib.
    description : str, default=""
        Said in front of the bar.
    total : int, optional
        Number of steps, if they have no length.
    verbose : bool, default=True
        Whether to show anything. Nothing is shown either without tqdm, or where standard error
        is a file: a bar is for people who wait.
    delay : float, default=0.0
        Seconds before the bar is shown, for work that is usually short.

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
