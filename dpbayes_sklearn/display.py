"""How much accuracy a privacy budget buys."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpbayes_sklearn.exceptions import PrivacyLeakWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrivacyUtilityDisplay"]

Scores = Mapping[str, Mapping[float, Sequence[float]]]
"""For every mechanism and epsilon the scores of the folds."""


class PrivacyUtilityDisplay:
    """Curves of score against epsilon, one per mechanism, beside the non-private score.

    The curves look at the data without protection: plot public or synthetic data, or keep the
    figure to yourself.

    Parameters
    ----------
    scores : mapping of str to mapping of float to sequence of float
        For every mechanism and epsilon the scores of the folds.
    baseline : float
        Mean score without privacy.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Set by :meth:`plot`.

    Examples
    --------
    >>> display = PrivacyUtilityDisplay.from_results(
    ...     {"laplace": {0.1: [0.5, 0.6], 1.0: [0.8, 0.9]}}, baseline=0.95
    ... )
    >>> print(display.table())
    epsilon        0.1        1        inf
    laplace      0.550    0.850      0.950
    """

    def __init__(self, scores: Scores, baseline: float) -> None:
        self.scores = scores
        self.baseline = baseline

    @classmethod
    def from_results(cls, scores: Scores, baseline: float) -> Self:
        """Return the display of scores that are known already."""
        return cls(scores, baseline)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
        mechanisms: Sequence[str] = ("laplace", "fourier", "sampler", "map"),
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> Self:
        """Cross-validate the estimator at every epsilon and mechanism.

        Parameters
        ----------
        estimator : estimator with parameters ``epsilon`` and ``mechanism``
        X, y : data
        epsilons : sequence of float
        mechanisms : sequence of str
        cv, scoring, n_jobs
            As in :func:`sklearn.model_selection.cross_val_score`.
        verbose : bool, default=False
            Show a progress bar.
        """

        def score(**parameters: Any) -> list[float]:
            candidate = clone(estimator).set_params(**parameters)
            folds = cross_val_score(candidate, X, y, cv=cv, scoring=scoring, n_jobs=n_jobs)
            return [float(s) for s in folds]

        with warnings.catch_warnings():  # one leak is as good as a hundred
            warnings.simplefilter("once", PrivacyLeakWarning)
            baseline = float(np.mean(score(epsilon=math.inf)))
            scores: dict[str, dict[float, list[float]]] = {m: {} for m in mechanisms}
            steps = [(m, e) for m in mechanisms for e in epsilons]
            for done, (mechanism, epsilon) in enumerate(steps, start=1):
                scores[mechanism][epsilon] = score(mechanism=mechanism, epsilon=epsilon)
                if verbose:
                    _progress(done, len(steps))
        return cls(scores, baseline)

    def table(self) -> str:
        """Return the mean scores as text, one line per mechanism."""
        epsilons = sorted({e for curve in self.scores.values() for e in curve})
        head = "epsilon  " + "".join(f"{e:9g}" for e in epsilons) + f"{'inf':>11}"
        rows = [
            f"{mechanism:9}"
            + "".join(f"{np.mean(curve[e]):9.3f}" if e in curve else " " * 9 for e in epsilons)
            + f"{self.baseline:11.3f}"
            for mechanism, curve in self.scores.items()
        ]
        return "\n".join([head, *rows])

    def plot(self, ax: Axes | None = None, *, ylabel: str = "score") -> Self:
        """Draw the curves, with one standard error on each side; needs matplotlib."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        for mechanism, curve in self.scores.items():
            epsilons = sorted(curve)
            means = np.array([np.mean(curve[e]) for e in epsilons])
            errors = np.array([np.std(curve[e]) / math.sqrt(len(curve[e])) for e in epsilons])
            (line,) = ax.plot(epsilons, means, marker="o", ms=4, label=mechanism)
            ax.fill_between(
                epsilons, means - errors, means + errors, alpha=0.15, color=line.get_color()
            )
        ax.axhline(self.baseline, color="0.4", ls="--", lw=1, label="non-private")
        ax.set(xscale="log", xlabel="privacy budget ε (smaller is more private)", ylabel=ylabel)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _progress(done: int, total: int) -> None:
    bar = "█" * round(30 * done / total)
    end = "\n" if done == total else ""
    print(f"\r  {bar:░<30} {done}/{total}", end=end, file=sys.stderr, flush=True)
