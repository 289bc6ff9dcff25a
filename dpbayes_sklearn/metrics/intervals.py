r"""Intervals of ratios of noisy numbers: both the privacy noise and the sampling error.

A metric is a ratio A/B of expectations (the right ones among all records, squared errors over
squared deviations). Neither the noise nor the sampling error of A - aB depends on whether B is far
from 0, so the interval is the set of all a that a test of E[A - aB] = 0 accepts (Fieller 1954):

.. math:: |\hat A - a\hat B| \le q(a),

where q(a) is a quantile of :math:`|Z_A - aZ_B + \sigma(a) N|`, with the noise Z simulated from its
public law and the sampling error normal. If the noise hides B, the interval is all of the metric's
range. Everything here is post-processing of released numbers.

An :class:`Evaluation` is all scores by name, with their intervals and one guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import norm

from dpbayes_sklearn._presenting import QUIET, aligned, card, table, tag
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy import PrivacyGuarantee

# With this many draws of the noise the share beyond its 0.975-quantile errs by 0.0025.
_NOISE_DRAWS = 4000
_SEED = 20_261  # The seed of public simulations.
_NUDGE = 1e-9  # The search for an end starts this part of the way into the range.
_LARGEST_RATIO = 1e6  # The interval of a ratio without an upper end stops here.


@dataclass(frozen=True)
class Score:
    """One metric of an evaluation, with an interval that contains both kinds of error.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Interval of the metric for the population that the records are a sample of.
    noise_std : float
        Standard deviation of the estimate that is due to the privacy noise.
    sampling_std : float
        Standard deviation that is due to the number of records, as without privacy.
    """

    value: float
    low: float
    high: float
    noise_std: float
    sampling_std: float

    def __float__(self) -> float:
        return self.value

    def mapped(self, function: Callable[[float], float], slope: float) -> Score:
        """Return the score of a monotone function of the metric, with its slope at the value."""
        low, high = sorted((function(self.low), function(self.high)))
        stds = (abs(slope) * self.noise_std, abs(slope) * self.sampling_std)
        return Score(function(self.value), low, high, *stds)


@dataclass(frozen=True)
class Noisy:
    """A released number, or an exact one, with draws from the distribution of its error."""

    value: float
    errors: FloatArray

    def __add__(self, other: Noisy) -> Noisy:
        return Noisy(self.value + other.value, self.errors + other.errors)

    def times(self, factor: float) -> Noisy:
        """Return a multiple."""
        return Noisy(factor * self.value, factor * self.errors)

    @staticmethod
    def exact(value: float) -> Noisy:
        """Return a number without noise."""
        return Noisy(value, np.zeros(_NOISE_DRAWS))


@lru_cache(maxsize=16)
def simulated(law: NoiseLaw | None, size: int) -> FloatArray:
    """Return draws of the noise of one release, in the units of its numbers; zeros without law."""
    if law is None:
        return np.zeros((_NOISE_DRAWS, size))
    return Noise(random_source(_SEED)).draw(law, _NOISE_DRAWS) / law.grid


def ratio(
    top: Noisy,
    bottom: Noisy,
    sampling: Callable[[float], float],
    ends: tuple[float, float],
    level: float,
) -> Score:
    """Return A/B with the interval of all a that are not refused, between the ends of the metric.

    ``sampling(a)`` is the variance of the sampling error of A - aB.
    """
    normal = norm.ppf((np.arange(_NOISE_DRAWS) + 0.5) / _NOISE_DRAWS)[_shuffled()]
    low, high = max(ends[0], -_LARGEST_RATIO), min(ends[1], _LARGEST_RATIO)

    def excess(a: float) -> float:
        noise = top.errors - a * bottom.errors + math.sqrt(max(sampling(a), 0.0)) * normal
        return abs(top.value - a * bottom.value) - float(np.quantile(np.abs(noise), level))

    unknown = (low + high) / 2 if math.isfinite(ends[1]) else 1.0
    centre = top.value / bottom.value if bottom.value > 0 else unknown
    centre = min(max(centre, low), high)
    below = _border(excess, centre, low)
    above = _border(excess, centre, high)
    size = max(abs(bottom.value), math.ulp(1.0))
    noise = float(np.std(top.errors - centre * bottom.errors)) / size
    spread = math.sqrt(max(sampling(centre), 0.0)) / size
    found = (ends[0] if below == low else below, ends[1] if above == high else above)
    return Score(centre, *found, noise, spread)


def _border(excess: Callable[[float], float], centre: float, end: float) -> float:
    """Return how far from the centre values are accepted on the side of an end."""
    if excess(end) <= 0:
        return end
    start = centre + _NUDGE * (end - centre)  # at the end of a range the sampling error may be 0
    return float(brentq(excess, start, end, xtol=1e-9)) if excess(start) < 0 else centre


@lru_cache(maxsize=1)
def _shuffled() -> npt.NDArray[np.intp]:
    """Return a fixed order, by which normal quantiles are paired with draws of the noise."""
    return np.random.default_rng(_SEED).permutation(_NOISE_DRAWS)


def mean_of(scores: Sequence[Score]) -> Score:
    r"""Return the mean of independent scores.

    The distances to the ends of the intervals are added as standard errors are,
    :math:`\bar x - \frac1K\sqrt{\sum_c (x_c - l_c)^2}` (Zou and Donner 2008).
    """
    number = len(scores)

    def together(parts: Sequence[float]) -> float:
        return math.hypot(*parts) / number

    value = sum(score.value for score in scores) / number
    return Score(
        value,
        max(value - together([s.value - s.low for s in scores]), 0.0),
        min(value + together([s.high - s.value for s in scores]), 1.0),
        together([s.noise_std for s in scores]),
        together([s.sampling_std for s in scores]),
    )


def auc(counts: FloatArray, variance: float, step: float, level: float) -> Score:
    r"""Return the area under the ROC curve of counts by score bin and class, with its interval.

    With :math:`K_{ij}` 1, 1/2 or 0 where bin i is below, equal to or above bin j, and the counts
    :math:`h_i` of the negative and :math:`g_j` of the positive class,
    :math:`T(a) = \sum_{ij} (K_{ij} - a) h_i g_j` is 0 in expectation at the true a. With
    :math:`u_j = \sum_i (K_{ij} - a) h_i` and :math:`v_i = \sum_j (K_{ij} - a) g_j`, noise of
    variance s² in every count and records that are a sample give it the variance

    .. math:: s^2\Big(\sum_j u_j^2 + \sum_i v_i^2\Big) + s^4\sum_{ij}(K_{ij} - a)^2
              + \sum_j g_j u_j^2 + \sum_i h_i v_i^2 ,

    of which an unbiased estimate is used: noise adds to a noisy u² on average
    :math:`s^2\sum_i (K_{ij} - a)^2`.

    *Within a bin* of width w = ``step`` on the scale of logits (0 if every score has its own bin),
    scores that are calibrated and spread evenly have an area of 1/2 + w/12, and those that are all
    equal one of 1/2. The estimate is in the middle, and the interval contains both.
    """
    negative, positive = counts.T
    n_negative, n_positive, place = negative.sum(), positive.sum(), np.arange(len(counts))
    doubt = step / 24
    tie = 0.5 + doubt
    below = np.cumsum(negative) - (1 - tie) * negative  # sum_i K_ij h_i
    above = n_positive - np.cumsum(positive) + tie * positive  # sum_j K_ij g_j
    z = float(norm.ppf((1 + level) / 2))

    def parts(a: float) -> tuple[float, float, float]:
        """Return T, the variance due to the noise and that due to sampling."""
        u, v = below - a * n_negative, above - a * n_positive
        squares = place * (1 - a) ** 2 + (tie - a) ** 2 + place[::-1] * a**2  # sum_i (K_ij - a)²
        noise = variance * float((u**2).sum() + (v**2).sum() - variance * squares.sum())
        sample = positive @ (u**2 - variance * squares)
        sample += negative @ (v**2 - variance * squares[::-1])
        return float(negative @ v), max(noise, 0.0), max(float(sample), 0.0)

    def excess(a: float) -> float:
        difference, noise, sample = parts(a)
        return abs(difference) - z * math.sqrt(noise + sample)

    pairs = float(n_negative * n_positive)
    centre = float(negative @ above) / pairs if pairs > 0 else 0.5
    centre = min(max(centre, 0.0), 1.0)
    _, noise, sample = parts(centre)
    stds = (math.sqrt(noise) / max(pairs, 1.0), math.sqrt(sample) / max(pairs, 1.0))
    if not min(n_negative, n_positive) > 0:
        return Score(centre, 0.0, 1.0, *stds)
    ties = doubt * max(float(negative @ positive), 0.0) / pairs
    low, high = (_border(excess, centre, end) for end in (0.0, 1.0))
    return Score(centre, max(low - ties, 0.0), min(high + ties, 1.0), *stds)


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, Any]):
    """Metrics of a model on private records; may be published.

    Attributes
    ----------
    scores : dict
        A :class:`Score` of every metric by its name; a :class:`ConfusionMatrix` or a
        :class:`CalibrationCurve` of those that are not one number. ``evaluation["accuracy"]`` is
        the same as ``evaluation.scores["accuracy"]``.
    guarantee : PrivacyGuarantee
        Of all of them together.
    level : float
        Nominal coverage of the intervals.
    n_records : float
        How many records were evaluated; a noisy number if it is secret.
    largest_error : float or None
        Of a regression: targets that are further than this from their predictions are moved to
        this distance, in all metrics.
    cut : Score or None
        The share of the records of which that is so; None if it can be so of none.
    """

    heads: ClassVar[tuple[str, ...]] = (
        "metric",
        "estimate",
        "interval",
        "error by noise",
        "error by sampling",
    )

    scores: dict[str, Any]
    guarantee: PrivacyGuarantee
    level: float
    n_records: float
    largest_error: float | None = None
    cut: Score | None = None

    def __getitem__(self, name: str) -> Any:
        return self.scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Metrics that are one number, as rows of text under ``heads``; and the share cut."""
        cut = {} if self.cut is None else {"share of errors cut": self.cut}
        return [
            (
                name,
                f"{score.value:.4g}",
                f"{score.low:.4g} to {score.high:.4g}",
                f"{score.noise_std:.2g}",
                f"{score.sampling_std:.2g}",
            )
            for name, score in [*self.scores.items(), *cut.items()]
            if isinstance(score, Score)
        ]

    @property
    def sentence(self) -> str:
        """Return on what, and how privately, the metrics were computed."""
        about = "about " * (not isinstance(self.n_records, int))  # it was released with noise
        return (
            f"Metrics on {about}{max(self.n_records, 0):,.0f} private records, with "
            f"{100 * self.level:g} % intervals that include sampling error and privacy noise. "
            f"{self._told_of_cuts}{self.guarantee}"
        )

    @property
    def _told_of_cuts(self) -> str:
        if self.cut is None:
            return ""
        return (
            f"Errors are cut at {self.largest_error:.4g}: a target that is further from its "
            "prediction is moved to this distance, for all metrics alike. "
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for machines."""
        scores = {name: _plain(score) for name, score in self.scores.items()}
        return {
            "scores": scores,
            "level": self.level,
            "n_records": self.n_records,
            "largest_error": self.largest_error,
            "cut": None if self.cut is None else _plain(self.cut),
            "guarantee": self.guarantee.to_dict(),
        }

    def __repr__(self) -> str:
        lines = aligned([self.heads, *self.rows], left=len(self.heads))
        return "\n".join([*map(str.rstrip, lines), self.sentence])

    def _repr_html_(self) -> str:
        parts = [tag("p", self.sentence, class_=QUIET)]
        if self.rows:
            parts.insert(0, table(self.heads, self.rows, text=[0]))
        return card("Private evaluation", *parts, accent=self.guarantee.accent)


@dataclass(frozen=True, repr=False)
class CrossValidation(Evaluation):
    """Metrics by cross-validation, and the models of its folds.

    Attributes
    ----------
    models : tuple
        One fitted model for each fold, each with the guarantee of its own fit.
    """

    models: tuple[Any, ...] = ()


def _plain(score: Any) -> dict[str, Any]:
    fields = score.__dict__ if isinstance(score, Score) else score._asdict()
    return {name: np.asarray(value).tolist() for name, value in fields.items()}
