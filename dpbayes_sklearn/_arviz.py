"""Draws from a released posterior for ArviZ, PyMC's and Stan's tool for looking at posteriors."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils import check_scalar

__all__ = ["ToArviz"]


class _Sampled(Protocol):
    _parameter: ClassVar[str]

    def sample(self, rng: np.random.Generator, n: int) -> Any:
        """Return draws along a first axis: an array, or a tuple of arrays."""


class ToArviz:
    """A posterior whose draws can be handed over; it has ``sample(rng, n)``."""

    _parameter: ClassVar[str] = "parameters"
    """What draws are called that are one array."""

    def to_arviz(self: _Sampled, draws: int = 1000, *, random_state: int | None = None) -> Any:
        """Return draws from the released posterior as ArviZ's ``InferenceData``.

        Post-processing, at no further privacy cost: draw as often as you like. One chain of
        independent draws, so that diagnostics of convergence say nothing.

        Parameters
        ----------
        draws : int, default=1000
        random_state : int, optional

        Returns
        -------
        arviz.InferenceData
            With one group, ``posterior``. The tables of a network are called ``feature_0``, ...,
            and ``class``, with the values of the parents along their first axes.
        """
        try:
            from arviz import from_dict
        except ImportError:
            raise ImportError(
                "to_arviz needs arviz. Install it with pip install 'dpbayes_sklearn[arviz]'."
            ) from None
        check_scalar(draws, "draws", Integral, min_val=1)
        drawn = self.sample(np.random.default_rng(random_state), int(draws))
        if not isinstance(drawn, tuple):
            return from_dict(posterior={self._parameter: drawn[None]})
        names = [*(f"feature_{j}" for j in range(len(drawn) - 1)), "class"]
        return from_dict(posterior=dict(zip(names, (table[None] for table in drawn), strict=True)))
