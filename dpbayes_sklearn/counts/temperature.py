r"""Exact sums of log losses, by which the temperature of a classifier is chosen.

Features of a record are not independent, so naive Bayes counts the same evidence several times.
With a temperature t and an emphasis :math:`\gamma` on informative features it predicts

.. math:: p(c \mid x) \propto \pi_c \exp\Bigl(t \sum_j q_j^\gamma \log \theta_{cj x_j}\Bigr),
    \qquad q_j = I_j / \max_i I_i

where :math:`I_j` is the mutual information of feature and class in the released tables. For every
(t, :math:`\gamma`) of a public grid, each record's log loss is clipped to :math:`[0, B]`,
:math:`B = 3.3 + \log C`, and rounded to a lattice, so sums are exact integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray, Positions
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.encoder import Codes, Encoder, SparseCodes
from dpbayes_sklearn.data.records import Records, Shard, with_target
from dpbayes_sklearn.noise.finite import choice_log_law, choice_loss, integer_weights
from dpbayes_sklearn.privacy.budget import Budget, Exact, PrivacyUnit
from dpbayes_sklearn.schema.domains import Categories

_STEPS_IN_A_NAT = 1024  # The lattice of losses has this many steps in one nat.
_CLIP = 3.3  # Losses are clipped this many nats above that of a uniform guess.
_LARGEST_GAP = 50.0  # Log ratios are cut at this many nats, far beyond where losses are clipped.
# Prior weights of the temperatures that can be learned, and of the emphases.
_TEMPERATURES = {
    1.0: 0.2, 0.8: 0.24, 0.65: 0.2, 0.5: 0.14, 0.4: 0.08,
    0.3: 0.06, 0.2: 0.03, 0.12: 0.02, 0.06: 0.01, 0.0: 0.02,
}  # fmt: skip
_EMPHASES = {0.0: 0.8, 1.0: 0.1, 2.0: 0.1}
_MOST_TOLD = 1.5  # What features tell about a class is believed up to this many entropies of it.
_ENOUGH = 20_000  # A temperature is learned well from this many records, at epsilon 0.2 or more.


@dataclass(frozen=True)
class Tempering:
    """A temperature and an emphasis on informative features; (1, 0) is plain naive Bayes."""

    temperature: float
    emphasis: float = 0.0

    def weights(self, information: FloatArray) -> FloatArray:
        """Return the weight of each feature's log probabilities, from mutual informations.

        >>> Tempering(0.5, emphasis=1.0).weights(np.array([0.2, 0.1]))
        array([0.5 , 0.25])
        """
        most = float(np.max(information, initial=0.0))
        if self.emphasis == 0.0 or most <= 0.0:
            return np.full(len(information), self.temperature)
        return np.asarray(self.temperature * (information / most) ** self.emphasis)


TEMPERINGS: dict[Tempering, float] = {
    Tempering(t, emphasis): v * w
    for (emphasis, v), (t, w) in product(_EMPHASES.items(), _TEMPERATURES.items())
}
"""Public candidates and their prior weights."""

DEFAULT = Tempering(0.65)
"""Used where no temperature is learned and the features may depend on each other in the model."""


def untaught(information: float, entropy: float) -> Tempering:
    r"""Return the temperature of naive Bayes when there are too few records to learn one.

    It looks at the released tables only: features that together seem to tell far more about the
    class than there is to know repeat each other. With the sum I of their mutual informations and
    the entropy H of the classes, it is :math:`1.5 H/I`, and 1 at most: below, tables do not show
    whether features repeat each other, and those that do not lose by a smaller one.

    >>> [round(untaught(information, 0.69).temperature, 2) for information in (0.05, 1.0, 3.0)]
    [1.0, 1.0, 0.34]
    """
    return Tempering(min(1.0, _MOST_TOLD * entropy / information) if information > 0.0 else 1.0)


def temperature_share(n: int, epsilon: Fraction) -> Fraction:
    r"""Return the share of the budget for learning the temperature, from public quantities.

    None below :math:`n\varepsilon = 500`, else :math:`400/(n\varepsilon)` within [0.04, 0.15].

    >>> [str(temperature_share(n, Fraction(1))) for n in (100, 1_000, 5_000, 100_000)]
    ['0', '3/20', '2/25', '1/25']
    """
    if n * epsilon < 500:
        return Fraction(0)
    return min(max(400 / (n * epsilon), Fraction(1, 25)), Fraction(3, 20))


def share_of_temperature(temperature: float | str, n: int, budget: Budget) -> Exact:
    """Return the epsilon for learning the temperature; none if it is given."""
    if temperature != "auto":
        return Fraction(0)
    if budget.infinite:
        return budget.epsilon
    epsilon = Fraction(budget.epsilon)
    return temperature_share(n, Fraction(budget.unit.equivalent(epsilon))) * epsilon


def sizes_of_shares(epsilon: Fraction) -> tuple[int, ...]:
    r"""Return numbers of records with no share, the largest share, one between, and the smallest.

    >>> [str(temperature_share(n, Fraction(2))) for n in sizes_of_shares(Fraction(2))]
    ['0', '3/20', '2/25', '1/25']
    """
    return (1, *(math.ceil(records / epsilon) for records in (500, 5_000, 10_000)))


def stride(n: int, epsilon: float) -> int:
    r"""Return s such that one of s records is enough to learn a temperature with ``epsilon``.

    >>> stride(1_000, 0.1), stride(1_000_000, 0.2)
    (1, 50)
    """
    enough = max(_ENOUGH, math.ceil(0.2 * _ENOUGH / epsilon)) if epsilon > 0 else n
    return max(n // enough, 1)


@dataclass(frozen=True)
class LossSums:
    """Sensitive: for each candidate of the grid, the sum of clipped log losses in lattice steps."""

    sums: IntArray
    n: int
    n_classes: int

    @classmethod
    def none(cls, n_classes: int) -> LossSums:
        """Return the sums of no record."""
        return cls(np.zeros(len(TEMPERINGS), np.int64), 0, n_classes)

    @classmethod
    def of(
        cls, log_prior: FloatArray, evidence: dict[float, FloatArray], classes: IntArray
    ) -> LossSums:
        """Add up losses of records with these classes.

        ``evidence`` (n, C) holds, for each emphasis, the records' weighted sums of log
        probabilities at temperature 1.
        """
        n_classes, sums = log_prior.shape[-1], []
        top = steps_at_most(n_classes)
        prior = _over_own_class(np.broadcast_to(log_prior, (len(classes), n_classes)), classes)
        gaps = {emphasis: _over_own_class(log, classes) for emphasis, log in evidence.items()}
        for option in TEMPERINGS:
            gap = option.temperature * gaps[option.emphasis]
            gap += prior
            np.minimum(gap, _LARGEST_GAP, out=gap)  # beyond, the loss is clipped
            loss = np.log(sum(np.exp(gap, out=gap)))  # in the same order for every record
            steps = np.clip(np.nan_to_num(_STEPS_IN_A_NAT * loss, nan=top, posinf=top), 0, top)
            sums.append(int(np.floor(steps).astype(np.int64).sum()))
        return cls(np.array(sums, np.int64), len(classes), n_classes)

    def __add__(self, other: LossSums) -> LossSums:
        """Return the sums of both sets of records."""
        return LossSums(self.sums + other.sums, self.n + other.n, self.n_classes)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return the sensitivity of every sum: the largest loss, in steps of the lattice.

        A record, or one value of it, changes one loss, which lies between 0 and B; one without a
        class has none.
        """
        return unit.max_records * steps_at_most(self.n_classes)

    def spread(self, unit: PrivacyUnit) -> int:
        """Return the range of the changes of all sums, from the lowest to the highest.

        A replaced record may raise some sums by B and lower others by B. One that comes raises
        all of them, one that goes lowers all of them, so the changes lie within B.
        """
        return self.sensitivity(unit) * (1 if unit.size_is_secret else 2)

    def at_most(self, n: int) -> LossSums:
        """Cut all sums at those of n records: no change of theirs grows by that."""
        most = n * steps_at_most(self.n_classes)
        return LossSums(np.minimum(self.sums, most), n, self.n_classes)

    def scores(self, unit: PrivacyUnit, epsilon: float) -> FloatArray:
        r"""Return the scores of the candidates: :math:`\log w - \varepsilon S/R`, R the spread."""
        weights = np.log(np.array([*TEMPERINGS.values()]))
        return np.asarray(weights - epsilon / float(self.spread(unit)) * self.sums)

    @staticmethod
    def magnitude(n: int, epsilon: float, unit: PrivacyUnit) -> float:
        r"""Return a public bound on the scores of n records.

        A sum is at most n B, the spread is B for each record that comes or goes, and
        :math:`|\log w| < 8`.
        """
        return epsilon * n / unit.n_changed + 8.0


Evidence = Callable[[Codes | SparseCodes], tuple[FloatArray, dict[float, FloatArray]]]
"""A function from codes to log p(c) and, for each emphasis, the features' log probabilities."""


class EvidenceModel(Protocol):
    """A released model whose temperature is to be chosen."""

    def evidence(self, emphases: tuple[float, ...], /) -> Evidence:
        """Return the function of codes for these emphases."""


@dataclass(frozen=True, repr=False)
class LossRecords:
    """Sensitive: records, for the losses that they have under a released model."""

    encoder: Encoder
    classes: Categories
    records: Records
    skips: bool = False  # Whether records without a class have no loss.

    def loss_sums(self, model: EvidenceModel, sample: Positions | None = None) -> LossSums:
        """Return the loss sums of all records, or of those at some positions, drawn at random."""
        read = self.encoder, self.classes, self.skips
        ask = partial(_loss_sums, *read, model.evidence(emphases()))
        return self.records.total(ask, sample)


class LabelledCounts(NamedTuple):
    """Sensitive: the tables, and the records that are asked for the temperature afterwards."""

    counts: CountTables
    records: LossRecords

    @property
    def n(self) -> int:
        """Number of records."""
        return self.counts.n


def tempering_weights(
    losses: LossSums, epsilon: float, unit: PrivacyUnit
) -> npt.NDArray[np.uint64]:
    """Return the integer weights that are drawn from, shape (1, candidates)."""
    effective = epsilon - choice_loss(len(TEMPERINGS), LossSums.magnitude(losses.n, epsilon, unit))
    scores = losses.scores(unit, max(effective, 0.0))
    return integer_weights(choice_log_law(scores[None]))


def _loss_sums(
    encoder: Encoder, classes: Categories, skips: bool, evidence: Evidence, shard: Shard
) -> LossSums:
    """Add up the losses of a shard; the number of records is public, with a class or without."""
    n, total = shard.table.n_rows, LossSums.none(classes.n_values)
    if skips:
        shard = with_target(shard, classes.is_known(shard.target))
    labels: Any = shard.target
    for rows, codes in encoder.compact_chunks(shard.table):
        total = total + LossSums.of(*evidence(codes), classes.encode(labels[rows]))
    return replace(total, n=n)


def _over_own_class(log: FloatArray, classes: IntArray) -> FloatArray:
    """Return logarithms less that of each record's own class, one row for each class."""
    by_class = np.ascontiguousarray(log.T)
    return np.asarray(by_class - by_class[classes, np.arange(len(classes))])


def emphases() -> tuple[float, ...]:
    """Return the emphases for which `LossSums.of` needs evidence."""
    return tuple(_EMPHASES)


def steps_at_most(n_classes: int) -> int:
    """Return the bound B on a loss in steps of the lattice, rounded up."""
    return math.ceil(_STEPS_IN_A_NAT * (_CLIP + math.log(n_classes)))
