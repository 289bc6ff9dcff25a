r"""The privacy guarantee of a release, as an immutable value, and what it means for one person.

**What an attacker can learn.** The attacker knows everything but whether the data are D or a
neighbour D', gives D a prior probability p, and sees the release. Let Q be the probability that an
attack accuses under D' (false positives) and P that it does under D (true positives).

* *Pure.* :math:`P \le e^\varepsilon Q` and :math:`1 - Q \le e^\varepsilon (1 - P)`; the posterior
  probability is at most :math:`p e^\varepsilon/(1 - p + p e^\varepsilon)`.
* *With a delta.* Both bounds plus :math:`\delta`. A privacy loss above
  :math:`\varepsilon + \ln 2` has probability at most :math:`2\delta`, because on that event
  :math:`P(1 - e^{\varepsilon - L}) \le \delta`.
* *zCDP*, as Gaussian noise has. Rényi divergences of every order :math:`\alpha > 1` are at most
  :math:`\alpha\rho`, also those of the attack's two answers (data processing):

  .. math:: P^\alpha Q^{1-\alpha} + (1-P)^\alpha (1-Q)^{1-\alpha}
            \le e^{\alpha(\alpha - 1)\rho} .

  The largest P that no order refuses is the trade-off curve. A loss above
  :math:`\rho + 2\sqrt{\rho\ln(1/\eta)}` has probability at most :math:`\eta` (Bun and Steinke 2016,
  Lemma 3.5), and no attack gains more than :math:`\sqrt{\rho/2}` (Pinsker).

**Gaussian differential privacy** (Dong, Roth and Su 2022). A release is :math:`\mu`-GDP if no
attack does better than on one normal number whose mean differs by :math:`\mu` deviations:
:math:`P \le \Phi(\Phi^{-1}(Q) + \mu)`. A pure guarantee has
:math:`\mu = -2\Phi^{-1}(1/(1 + e^\varepsilon))`. *Proof.* For normal numbers the least
:math:`1 - P` for a given Q is a convex curve from (0, 1) to (1, 0). With this :math:`\mu` it goes
through :math:`Q = 1 - P = 1/(1 + e^\varepsilon)`, where the two lines of a pure guarantee meet.
These are its chords from there to its ends, so they lie above it. ∎ With a delta no :math:`\mu`
exists: with probability :math:`\delta` a release may tell the data sets apart without any false
positive.

For continuous Gaussian noise the exact curve is
:math:`\Phi(\Phi^{-1}(Q) + \sqrt{2\rho})`, a tenth below this bound at :math:`\varepsilon = 1`,
:math:`\delta = 10^{-6}`; discrete noise only has it nearly, so it is not what is claimed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri_exp

from dpbayes_sklearn._presenting import QUIET, card, remark, tag, tiles
from dpbayes_sklearn.privacy.budget import Budget, Copies, PrivacyUnit, at_least, exact, round_up

# How the first sentence of a guarantee names what is protected.
_UNITS = {"record": "Record-level", "feature": "Attribute-level", "person": "Person-level"}
_EXACT = ", drawn in integer arithmetic without rounding"
_MECHANISMS = {
    "laplace": "discrete Laplace noise, or joint noise of a K-norm mechanism" + _EXACT,
    "fourier": "discrete Laplace noise on Fourier coefficients" + _EXACT,
    "gaussian": "discrete Gaussian noise" + _EXACT,
    "geometric": "discrete Laplace (geometric) noise" + _EXACT,
}

_CHANGING = {"replace": "Changing", "add_remove": "Adding or removing"}
WEAK = 10  # A guarantee with a larger epsilon is called weak.
_WRITTEN_OUT = 15  # Above this epsilon, exp(epsilon) is too long a number to write out.
# Data sets are multisets: where a position decides the batch, one record more moves all others to
# other batches.
APART = ", and nobody's batch depends on other people's records, such as on a position in a table"
# Needed because each batch's size is public.
STAYS = ", and somebody who is replaced stays in the same batch"


def registry_entry(guarantee: PrivacyGuarantee) -> dict[str, Any]:
    """Return what the registry asks for, as far as the library knows it."""
    unit: PrivacyUnit = guarantee.privacy_unit
    parameters = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
    if not guarantee.is_private:
        raise ValueError(
            "This release is not private (epsilon is infinite): the registry has no entry for it."
        )
    mechanism = _MECHANISMS.get(guarantee.mechanism, f"{guarantee.mechanism} mechanism")
    version = getattr(sys.modules.get("dpbayes_sklearn"), "__version__", "")
    deployment = {
        "dp_flavor": {
            "name": _flavour(guarantee),
            "input_metric": unit.definition,
            "bound_on_input_distance": str(unit),
            "output_measure": "Rényi divergences" if guarantee.rho else "privacy loss",
            "bound_on_output_distance": guarantee.meaning,
            "unprotected_quantities": _unprotected(guarantee),
        },
        "privacy_loss": {
            "privacy_unit": _UNITS[unit.name],
            "privacy_unit_description": f"{unit.full}; neighbours are {unit.definition}.",
            "privacy_parameters": {k: v for k, v in parameters.items() if v},
            "privacy_parameters_description": guarantee.risk_sentence,
        },
        "model": {
            "model_name": "Central",
            "model_name_description": "The curator holds the records and adds the noise.",
            "release_type": "Single release",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "Inference, predictions and intervals use released values only.",
            "composition": "Steps of a release share its budget exactly, as fractions.",
        },
        "implementation": {"mechanisms": f"{mechanism} (dpbayes_sklearn {version})."},
    }
    return {"status": "Draft", "deployment": deployment}


def _flavour(guarantee: PrivacyGuarantee) -> str:
    if not guarantee.delta:
        return "Pure DP"
    return "Approximate DP" if guarantee.rho is None else "Zero-concentrated DP"


def _unprotected(guarantee: PrivacyGuarantee) -> str:
    unit = guarantee.privacy_unit
    size = [] if unit.size_is_secret else ["the number of records"]
    label = ["the label of the record"] if unit.name == "feature" else []
    known = [*size, *label, "declared domains and parameters", "running time"]
    conditions = [f"It holds provided that {c}." for c in guarantee.conditions]
    return " ".join([f"Not protected: {', '.join(known)}.", *conditions])


# Orders of the Rényi divergence at which hypothesis tests are bounded.
_TEST_ORDERS = 1 + np.geomspace(1e-3, 1e4, 141)


@dataclass(frozen=True)
class PrivacyRisk:
    """The most that an attacker can learn about one person, or record, from a release.

    Attributes
    ----------
    prior : float
        What the attacker believed before, as a probability.
    posterior : float
        The most that the attacker can believe after.
    exception : float
        Probability of a release for which the posterior may be larger; 0 without a delta.
    false_positive_rate, true_positive_rate : float
        An attack that accuses this share of the innocent finds at most this share of the others.
    advantage : float
        Largest difference between the two rates of any attack.
    mu : float or None
        The release is mu-GDP (Gaussian differential privacy); None with a delta.
    """

    prior: float
    posterior: float
    exception: float
    false_positive_rate: float
    true_positive_rate: float
    advantage: float
    mu: float | None

    def sentence(self, unit: str = "one record") -> str:
        """Return the risk in plain words.

        >>> privacy_risk(1.0, 0.0, None, 0.5, 0.05).sentence()[:77]
        'Whoever knows all other records and is 50 % sure of a guess about one record '
        """
        rare = f" (but for {self.exception:.1g} of all releases)" if self.exception else ""
        return (
            f"Whoever knows all other records and is {_percent(self.prior)} sure of a guess about "
            f"{unit} is at most {_up(self.posterior)} sure after seeing this release{rare}. A test "
            f"of the guess with a false-positive rate of {_percent(self.false_positive_rate)} has "
            f"a true-positive rate of at most {_up(self.true_positive_rate)}."
        )

    __str__ = sentence


def privacy_risk(
    epsilon: float, delta: float, rho: float | None, prior: float, fpr: float
) -> PrivacyRisk:
    """Return the risk of a guarantee.

    >>> risk = privacy_risk(1.0, 0.0, None, 0.5, 0.05)
    >>> round(risk.posterior, 3), round(risk.true_positive_rate, 3), round(risk.advantage, 3)
    (0.731, 0.136, 0.462)
    """
    for name, value in (("prior", prior), ("false_positive_rate", fpr)):
        if not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
            raise ValueError(
                f"The {name!r} parameter of risk must be a float in the range (0.0, 1.0). "
                f"Got {value!r} instead."
            )
    loss, exception = _largest_loss(epsilon, delta, rho)
    posterior = float(expit(logit(prior) + loss)) if loss < math.inf else 1.0
    found = true_positive_rate(float(fpr), epsilon, delta, rho)
    advantage = _advantage(epsilon, delta)
    if rho is not None:
        advantage = min(advantage, math.sqrt(rho / 2))
    mu = None if delta else gaussian_mu(epsilon)
    return PrivacyRisk(float(prior), posterior, exception, float(fpr), found, advantage, mu)


def gaussian_mu(epsilon: float) -> float:
    """Return the mu of Gaussian differential privacy that a pure guarantee has, rounded up.

    >>> round(gaussian_mu(1.0), 3)
    1.232
    """
    return float(-2 * ndtri_exp(-np.logaddexp(0.0, epsilon))) * (1 + 1e-12) + 1e-14


def _advantage(epsilon: float, delta: float) -> float:
    r"""Return the largest gap, :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)`."""
    return float(np.tanh(epsilon / 2) + 2 * delta * expit(-epsilon))


def _largest_loss(epsilon: float, delta: float, rho: float | None) -> tuple[float, float]:
    """Return a privacy loss, and the probability of a larger one."""
    if not delta or math.isinf(epsilon):
        return epsilon, 0.0
    if rho is not None and math.isfinite(rho):
        return rho + 2 * math.sqrt(rho * math.log(1 / delta)), delta
    return epsilon + math.log(2), 2 * delta


def true_positive_rate(fpr: float, epsilon: float, delta: float, rho: float | None) -> float:
    """Bound the share of true positives of any attack from above.

    >>> round(true_positive_rate(0.05, 1.0, 1e-6, 0.0243), 3)
    0.083
    """
    if math.isinf(epsilon):
        return 1.0
    small = math.exp(-epsilon)
    likely = fpr / small + delta if small else 1.0
    line = min(likely, 1 - small * (1 - delta - fpr), 1.0)
    if rho is None or not math.isfinite(rho):
        return line
    if _excess(line, fpr, rho) <= 0:
        return line
    ends = math.log(fpr), math.log(line)
    log_rate = brentq(lambda x: _excess(math.exp(x), fpr, rho), *ends, xtol=1e-12)
    return min(math.exp(float(log_rate) + 1e-9), line)  # rounded up


def _excess(tpr: float, fpr: float, rho: float) -> float:
    """Return by how much some Rényi divergence of the two answers exceeds its bound."""
    with np.errstate(divide="ignore"):
        yes = _TEST_ORDERS * np.log(tpr) + (1 - _TEST_ORDERS) * np.log(fpr)
        no = _TEST_ORDERS * np.log1p(-min(tpr, 1.0)) + (1 - _TEST_ORDERS) * np.log1p(-fpr)
    divergence = np.logaddexp(yes, no) / (_TEST_ORDERS - 1)
    return float((divergence - _TEST_ORDERS * rho).max())


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _up(share: float) -> str:
    """Return a share in percent, rounded up."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"


@dataclass(frozen=True)
class PrivacyGuarantee:
    """The privacy guarantee of a release.

    Attributes
    ----------
    epsilon, delta : float
        For every two neighbouring data sets and every set of outcomes S,
        P(S | D) <= exp(epsilon) P(S | D') + delta.
    unit : {"record", "feature", "person"}
        What one person's contribution is.
    neighbours : str
        Which data sets are neighbours, hence nearly indistinguishable.
    mechanism : str
        How the posterior was released.
    conditions : tuple of str
        Assumptions that the library cannot check; empty is best.
    rho : float or None
        The release is also rho-zCDP: Rényi divergences of every order alpha > 1 between
        neighbours are at most alpha * rho. It composes better than (epsilon, delta).
    max_records : int
        How many records of one person are protected together; 1 for other units.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    mechanism: str
    conditions: tuple[str, ...] = ()
    rho: float | None = None
    max_records: int = 1

    @classmethod
    def of(cls, budget: Budget, mechanism: str, conditions: Iterable[str] = ()) -> PrivacyGuarantee:
        """Return the guarantee of a release that spent ``budget``."""
        return cls(
            round_up(budget.epsilon),
            round_up(budget.delta),
            budget.unit.name,
            budget.unit.definition,
            mechanism,
            tuple(conditions),
            None if budget.rho is None else round_up(budget.rho),
            budget.unit.max_records,
        )

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Who is protected, as a value."""
        return PrivacyUnit.read(self.unit, self.max_records, self.neighbours)

    @staticmethod
    def parallel(batches: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
        """Return the guarantee of releases about different people, one for each batch of them."""
        first = batches[0]
        if len(batches) == 1:
            return first
        together = sum((exact(batch.epsilon) for batch in batches), Fraction(0))
        deltas = sum((exact(batch.delta, "delta") for batch in batches), Fraction(0))
        and_deltas = f", the deltas to {at_least(deltas)}" if deltas else ""
        conditions = [c for batch in batches for c in batch.conditions]
        stays = "" if first.privacy_unit.size_is_secret else STAYS
        rhos = [batch.rho for batch in batches if batch.rho is not None]
        return replace(
            first,
            epsilon=max(batch.epsilon for batch in batches),
            delta=max(batch.delta for batch in batches),
            mechanism=" and ".join(dict.fromkeys(batch.mechanism for batch in batches)),
            rho=max(rhos) if len(rhos) == len(batches) else None,
        ).under(
            *conditions,
            f"no person is in two of the {len(batches)} batches (for one who is in all of them "
            f"the epsilons add up to {at_least(together)}{and_deltas}){APART}{stays}",
        )

    def under(self, *conditions: str) -> PrivacyGuarantee:
        """Return the same guarantee with further conditions."""
        return replace(self, conditions=tuple(dict.fromkeys((*self.conditions, *conditions))))

    def of_copies(self, copies: Copies) -> PrivacyGuarantee:
        """Return what a guarantee about added or removed copies promises to who is protected."""
        rho = None if self.rho is None else exact(self.rho, "rho")
        inner = Budget(exact(self.epsilon), exact(self.delta, "delta"), copies.counted, rho)
        return PrivacyGuarantee.of(copies.outer(inner), self.mechanism, self.conditions)

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite; the guarantee then holds under its ``conditions``."""
        return not math.isinf(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for machines, with ``is_private``."""
        conditions = list(self.conditions)
        return {"is_private": self.is_private, **asdict(self), "conditions": conditions}

    def to_registry(self) -> dict[str, Any]:
        """Return an entry for the Differential Privacy Deployments Registry.

        Variant, unit, parameters, model, accounting, implementation and unprotected quantities, in
        the registry's own fields; as YAML it is a draft to which product, curators and sources are
        added.

        Examples
        --------
        >>> entry = PrivacyGuarantee.of(Budget(exact(1.0)), "laplace").to_registry()
        >>> entry["deployment"]["dp_flavor"]["name"]
        'Pure DP'
        >>> entry["deployment"]["privacy_loss"]["privacy_parameters"]
        {'epsilon': 1.0}
        """
        return registry_entry(self)

    @property
    def _level(self) -> str:
        if math.isinf(self.epsilon):
            return "Not private (epsilon is infinite)"
        delta = f", delta = {at_least(self.delta)}" if self.delta else ""
        rho = "" if self.rho is None else f" (rho = {at_least(self.rho, 3)} zCDP)"
        return f"Differentially private with epsilon = {at_least(self.epsilon)}{delta}{rho}"

    def __str__(self) -> str:
        what = f"{self._level} under the {self.mechanism} mechanism, for {self.neighbours}"
        return what + "".join(f"; provided that {c}" for c in self.conditions) + "."

    @property
    def meaning(self) -> str:
        """Return what the figures mean, in plain words.

        >>> PrivacyGuarantee.of(Budget(exact(1.0)), "laplace").meaning
        'Changing one record makes no result of this release more than 2.72 times as likely.'
        """
        if math.isinf(self.epsilon):
            return "This model was computed without noise and may reveal any record."
        delta = f" (plus {at_least(self.delta)})" if self.delta else ""
        return (
            f"{_CHANGING[self.privacy_unit.neighbours]} {self.privacy_unit} makes no result of "
            f"this release more than {_odds(self.epsilon)} times as likely{delta}."
        )

    def risk(self, prior: float = 0.5, false_positive_rate: float = 0.05) -> PrivacyRisk:
        """Return the most that an attacker can learn about one person, as probabilities.

        Of pure guarantees in closed form; with a delta by (epsilon, delta) and, where it is known,
        by zCDP. The conditions of the guarantee apply.

        Parameters
        ----------
        prior : float, default=0.5
            How sure the attacker was before, of a guess about the person.
        false_positive_rate : float, default=0.05
            Of an attack whose true positives are asked.

        Examples
        --------
        >>> guarantee = PrivacyGuarantee.of(Budget(exact(1.0)), "laplace")
        >>> round(guarantee.risk(prior=0.01).posterior, 4)
        0.0267
        """
        return privacy_risk(self.epsilon, self.delta, self.rho, prior, false_positive_rate)

    @property
    def risk_sentence(self) -> str:
        """Return the risk at even odds, in plain words."""
        if math.isinf(self.epsilon):
            return "Nothing limits what can be learned about one record."
        return self.risk().sentence(str(self.privacy_unit))

    def _repr_html_(self) -> str:
        return self.card()

    def card(self, options: str = "") -> str:
        """Return the guarantee as an HTML card.

        Parameters
        ----------
        options : str, default=""
            Options of the mechanism, to tell releases of the same mechanism apart.
        """
        figures = [
            ("epsilon", at_least(self.epsilon)),
            ("delta", at_least(self.delta)),
            *([] if self.rho is None else [("rho", at_least(self.rho, 3))]),
            ("unit", str(self.privacy_unit)),
            ("mechanism", ", ".join(filter(None, (self.mechanism, options)))),
        ]
        parts = [
            tag("p", self.meaning),
            tiles(figures),
            tag("p", self.risk_sentence, class_=QUIET),
            tag("p", tag("span", "Neighbours: ", class_=QUIET), self.neighbours + "."),
        ]
        if self.conditions:
            items = (tag("li", condition) for condition in self.conditions)
            parts += [tag("p", "Provided that", class_=QUIET), tag("ul", *items)]
        return card(self._level, *parts, accent=self.accent)

    @property
    def accent(self) -> str:
        """Colour of a card: "good", "weak" or "bad"."""
        if math.isinf(self.epsilon):
            return "bad"
        return "weak" if self.epsilon > WEAK else "good"


def total_in_words(total: Budget) -> str:
    """Return what several releases about the same people cost together.

    >>> total_in_words(Budget(exact(1.0), exact(1e-6, "delta")))
    'epsilon = 1, delta = 1e-06, which makes no result more than 2.72 times as likely (plus 1e-06)'
    """
    if total.infinite:
        return "nothing is private"
    delta = f", delta = {at_least(total.delta)}" if total.delta else ""
    plus = f" (plus {at_least(total.delta)})" if total.delta else ""
    odds = _odds(round_up(total.epsilon))
    return (
        f"epsilon = {at_least(total.epsilon)}{delta}, which makes no result more than {odds} times "
        f"as likely{plus}"
    )


def _odds(epsilon: float) -> str:
    """Return exp(epsilon) rounded up, as text."""
    if epsilon > _WRITTEN_OUT:
        return f"exp({at_least(epsilon)})"
    factor = math.nextafter(math.exp(epsilon), math.inf)
    return f"{math.ceil(factor):,}" if factor >= 100 else f"{math.ceil(100 * factor) / 100:.2f}"


def warn_if_weak(budget: Budget) -> None:
    """Log that a finite epsilon above 10 is a weak guarantee."""
    if budget.epsilon > WEAK and not budget.infinite:
        remark(
            "epsilon = %s is a weak guarantee. %s An epsilon of 1 or below is strong; above %g it "
            "is mostly of theoretical use.",
            at_least(budget.epsilon),
            PrivacyGuarantee.of(budget, "").meaning,
            WEAK,
        )
