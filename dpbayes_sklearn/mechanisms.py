r"""Ways to turn exact statistics into a private posterior: their names and options.

What is done with the options is a plan of a subject: :mod:`dpbayes_sklearn.counts.plans`,
:mod:`dpbayes_sklearn.regression.plans`, :mod:`dpbayes_sklearn.categories.plans`. What they promise:

**Laplace.** Discrete Laplace noise on exact statistics.

*Guarantee.* *Precondition*: the statistics are integers of sensitivity :math:`\Delta` in a norm K,
which their own type derives. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: with b the scale
:math:`\Delta/\varepsilon`, :math:`P(T + Z = z)/P(T' + Z = z) = e^{(\|z-T'\|_K - \|z-T\|_K)/b} \le
e^{\Delta/b} = e^\varepsilon`. What follows is post-processing.

*Noise law.* :math:`P(Z = z) \propto e^{-\|z\|_K/b}` on the integers or a lattice, without
floating-point numbers. For naive Bayes, K is by default the norm of
:class:`~dpbayes_sklearn.noise.class_rows.ClassRows` (joint noise). Otherwise it is the L1 norm:
independent noise in every cell. There, with a ``budget_split`` w, the class table, of sensitivity
:math:`\Delta_c`, has scale b/w and the others :math:`b = (\Delta - \Delta_c + w
\Delta_c)/\varepsilon`: their losses add to :math:`\varepsilon`.

*Regression.* All products of columns and target between their bounds, with the law :math:`P(z)
\propto e^{-\varepsilon\|z\|/\Delta}` in the L1 or the sup norm, or matrix noise, whichever has less
variance. Where the number of records is public, a small share of :math:`\varepsilon` is for the
number of those without a target (:mod:`dpbayes_sklearn.regression.plans`).

**Gaussian.** Discrete Gaussian noise: less than Laplace noise where a record changes much, for a
delta.

*Guarantee.* *Precondition*: counts that neighbours change by the integer vectors v which their own
type derives, and noise of variance :math:`\sigma^2/w_i` in cell i. *Claim*: :math:`(\varepsilon,
\delta)`-DP, and :math:`\rho`-zCDP with :math:`\rho = \sum_i w_i v_i^2/2\sigma^2`. *Proof*:
:math:`\sigma^2` is the smallest for which the exact privacy loss of these shifts is within
:math:`(\varepsilon, \delta)` (:mod:`dpbayes_sklearn.privacy.gaussian`). A learned temperature is a
pure release of :math:`\varepsilon_t` that looks at the tables. It is post-processing of them and of
a randomised response, so both together have the exact loss of Gaussian noise and an independent
loss of :math:`\pm\varepsilon_t`, within :math:`(\varepsilon, \delta)`; and :math:`\rho +
\tfrac12\varepsilon_t^2`. What follows is post-processing.

*Noise law.* :math:`P(Z = z) \propto e^{-wz^2/2\sigma^2}` on the integers, independent in every
cell. All cells of a table have one weight w, larger in larger tables, by which the sum of all
variances is least (:mod:`dpbayes_sklearn.counts.tables`). For naive Bayes with d features and equal
weights the L2 sensitivity is :math:`\sqrt{2(d+1)}`, so the noise grows with the square root of d.
Differences within a row could not have less: two records of one class change them by
:math:`\sqrt{2d}` already.

*Regression.* The products of "laplace" with Gaussian noise in fine steps, of variance
:math:`\Delta_2^2/2\rho`, and :math:`\rho` is the largest for which they are :math:`(\varepsilon,
\delta)`-DP (:mod:`dpbayes_sklearn.privacy.gaussian`). The number of records without a target has a
pure share.

**Auto.** The mechanism with the least noise that epsilon and delta allow.

*Guarantee.* The choice depends on public quantities only: the structure of the counts or the
columns of a regression, the number of records and the budget. So the guarantee is that of the
mechanism which is chosen; ``guarantee_.mechanism`` names it, and ``guarantee_.delta`` is what it
spends: that of "gaussian", or of "map" with Gaussian noise.

*Noise law.* For counts that of ``laplace`` (for one variable ``geometric``) or of ``gaussian``,
whichever has less variance on average over the released counts. Without a delta Gaussian noise is
not possible. A regression has ``map``. That of a linear one, with enough records for each
coefficient, is followed by the way from the mode to least squares
(:mod:`dpbayes_sklearn.convex.linear`); with fewer it is the mode alone.

**Fourier.** Discrete Laplace noise in the Fourier domain: tables that agree with each other.

*Guarantee.* *Precondition*: replacing a record changes the character sums by at most
:math:`\Delta_F` in L1 (4d for Boolean naive Bayes) and any of them by at most :math:`\Delta_\infty`
(2). *Claim*: pure :math:`\varepsilon`-DP. *Proof*: as for ``laplace``, in the norm of the noise;
the sum of the constant character is n, which neighbours share, so it needs no noise (where records
are added or removed, n was released before). The increment is a function of public quantities only,
and so is the choice of the noise; the tables are post-processing.

*Noise law.* Independent discrete Laplace noise of scale :math:`\Delta_F/\varepsilon` on every
integer sum, or ``noise="joint"``: :math:`P(z) \propto e^{-\varepsilon\max_i|z_i|/\Delta_\infty}` on
a public lattice 1/g, g a power of two. A sum that several families hold is released once, so that
all tables agree on shared marginals.

*Regression.* On [-1, 1] the characters are Chebyshev polynomials, x and :math:`2x^2 - 1`. All their
sums, one for each entry of the moments, are released at once; raising that of the constant raises
every square, so that the moments are positive semi-definite with probability ``stealth`` and need
no repair.

**Sampler.** Draws from the posterior itself: truncated, tempered, on a public grid.

*Guarantee.* *Precondition*: the counts of n records; the grid, the tempering :math:`\tau` and the
number N of draws are public. *Claim*: pure :math:`\varepsilon`-DP. *Proof*: every table is a tree
of independent splits, and a change of one turn at a split costs at most
``SplitGrid.loss_of_adding``, the exact worst case over all reachable counts, which is never above
:math:`\tau L`, :math:`L = \ln((1-\omega)/\omega)`. Summed over what a neighbouring change can touch
and over N draws that is at most :math:`2 N \tau D L` for a record, D the sum of the nodes' depths;
:math:`\tau` is the largest that keeps the exact sum within :math:`\varepsilon`, the rounding of
weights to integers counted in.

With a delta, :math:`(\varepsilon, \delta)`-DP where that allows a larger :math:`\tau`: a split
whose log ratio has a range of w is :math:`w^2/8`-zCDP, which adds up over splits and draws
(``release_rho``). So N draws cost :math:`\sqrt N` times one, and d tables :math:`\sqrt d`.

*Noise law.* :math:`\theta_s \propto \theta^{a+\tau k}(1-\theta)^{b+\tau m}` over the grid, drawn
exactly from integer weights.

*Regression.* :math:`p(w) \propto \pi(w) e^{-\frac\kappa2\sum(t - w^\top x)^2}` on a ball around a
perturbed mode, which has half of the budget, with :math:`\kappa \le 1/\sigma^2`: the posterior,
tempered as far as needed, with :math:`\varepsilon_1` for each of N draws. The proof is in
:mod:`dpbayes_sklearn.convex.draws`; the draws are of real numbers, which the guarantee
names as a condition.

**MAP.** The most probable tables, by the exponential mechanism on a finite grid.

*Guarantee.* *Precondition*: the counts of n records; grid and prior are public, the grid is finite
(densities over a continuum have no bounded sensitivity). *Claim*: pure :math:`\varepsilon`-DP.
*Proof*: with ``score="log_posterior"`` the law is that of the sampler with an exponent :math:`\tau`
that may exceed 1, so the same exact loss applies. With ``score="posterior"`` every split is an
exponential mechanism of its own, whose score (the posterior mass of a grid point) changes by at
most ``mass_sensitivity`` per turn; a neighbouring change makes at most as many turns as the split
trees allow, and the budget is shared evenly among them.

*Noise law.* ``log_posterior``: :math:`P(\theta) \propto w(\theta)\,\pi(\theta)^{\max(1,\tau)}
\mathrm{lik}(\theta)^\tau` with w the spacing of the grid: the prior when :math:`\varepsilon \to 0`
and the MAP when :math:`\varepsilon \to \infty`. ``posterior``: :math:`P(\theta) \propto w\pi
\exp(\varepsilon_s\,\xi(\theta) / 2\Delta)`. Both are drawn exactly from integer weights.

*Regression.* The mode of a robust posterior, its gradient perturbed; exact, with a proof in
:mod:`dpbayes_sklearn.convex.perturbed`. With a delta, and many columns, the noise is Gaussian:
:mod:`dpbayes_sklearn.noise.gradient`. With ``coef_bound``, one draw by the exponential mechanism:
the law of the sampler with a :math:`\kappa` however large; where it exceeds :math:`1/\sigma^2` the
prior is sharpened alike.

For ``geometric`` and ``laplace_improved`` see :mod:`dpbayes_sklearn.categories.plans`; for
``exponential``, ``hellinger`` and ``local`` see :mod:`dpbayes_sklearn.papers.choices`.
"""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import Any, ClassVar

from dpbayes_sklearn._compat import HelpfulEstimator, Range, StrOptions

__all__ = [
    "MAP",
    "Auto",
    "Exponential",
    "Fourier",
    "Gaussian",
    "Geometric",
    "Hellinger",
    "Laplace",
    "LaplaceImproved",
    "Local",
    "Mechanism",
    "Sampler",
    "mechanism_class",
    "resolve_mechanism",
]


class Mechanism(HelpfulEstimator):
    """A way to turn exact statistics into a private posterior.

    It has options only: what is done with them is the plan of a subject, such as
    :func:`dpbayes_sklearn.counts.plans.plan`. Options are constructor parameters, so an estimator's
    ``mechanism__option`` reaches them in a grid search.
    """

    walks_splits: ClassVar[bool] = False
    """Whether a many-valued variable costs one level of a tree of splits per doubling."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    needs_delta: ClassVar[bool] = False
    """Whether a release must have a delta above zero."""

    knows_rho: ClassVar[bool] = False
    """Whether a release with a delta also has a known zCDP, which composes better."""

    @property
    def spends_delta(self) -> bool:
        """Whether a release spends the delta that it is given; others are purely private."""
        return self.needs_delta

    @classmethod
    def name(cls) -> str:
        """Name of the mechanism: that of its class, in lower case."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class Laplace(Mechanism):
    """Add discrete Laplace noise to the statistics that update the prior.

    The noise does not depend on the number of records. Independent noise of naive Bayes with d
    features has scale 2(d+1)/epsilon in every cell of every table.

    Parameters
    ----------
    budget_split : float, default=1.0
        Share of the budget that the table of class counts gets, in units of the share of any
        other table. Noise-aware inference also learns the class counts from the other tables, so
        less than 1 can help it. A value other than 1 implies independent noise. Only for a class
        without parents; moments are not affected.
    noise : {"auto", "joint", "independent"}, default="auto"
        For the counts of naive Bayes: independent Laplace noise in every cell, or joint noise of
        all tables whose density decays with the largest per-table L1 change (a K-norm mechanism).
        The latter has up to twelve times less variance for Boolean features, four times for four
        values and twice for eight, because a record changes all tables at once but only the rows
        of its class. "auto" takes what has less variance, by public quantities only. Regression
        always does.

    Examples
    --------
    >>> Laplace.name()
    'laplace'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "budget_split": [Range(Real, 0, None, closed="neither")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(self, *, budget_split: float = 1.0, noise: str = "auto") -> None:
        self.budget_split = budget_split
        self.noise = noise


class Gaussian(Mechanism):
    """Add discrete Gaussian noise to every count or sum; needs a delta.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2, "temperature": 1}
    >>> model = BayesianNaiveBayes(1.0, delta=1e-6, mechanism="gaussian", **declared).fit(X, y)
    >>> model.guarantee_.epsilon, model.guarantee_.delta, round(model.guarantee_.rho, 4)
    (1.0, 1e-06, 0.028)
    >>> round(float(model.posterior_.released.laws[0].parameters[0]) ** 0.5, 2)
    9.76
    """

    needs_delta: ClassVar[bool] = True
    knows_rho: ClassVar[bool] = True


class Auto(Mechanism):
    """Add the noise with the least variance that epsilon and delta allow.

    For a linear regression: release a mode and, with enough records, the way to least squares.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0] * 80, [1] * 80] * 50, [0, 1] * 50
    >>> model = BayesianNaiveBayes(mechanism="auto", bounds=(0, 1), classes=[0, 1], n_bins=2)
    >>> [model.set_params(delta=d).fit(X, y).guarantee_.mechanism for d in (0, 1e-6)]
    ['laplace', 'gaussian']
    """

    knows_rho: ClassVar[bool] = True

    @property
    def spends_delta(self) -> bool:
        """True, because the mechanism that is chosen may spend it."""
        return True


class Fourier(Mechanism):
    """Add discrete Laplace noise to the Fourier coefficients of the counts.

    Parameters
    ----------
    increment : {"calibrated", "paper"}, default="calibrated"
        How much the constant coefficient is raised so that no cell of a table is negative:
        the ``stealth`` quantile of what the public noise law needs, or the rule
        4 t N^2 / epsilon of Zhang, Rubinstein and Dimitrakakis (2016), N the number of
        coefficients. Cells that are negative all the same are set to zero.
    stealth : float in [0, 1), default=0.9
        Probability with which all cells come out non-negative.
    t : float, default=2.3
        The paper's parameter, for ``increment="paper"``.
    noise : {"auto", "joint", "independent"}, default="auto"
        For counts: independent Laplace noise on every coefficient, or joint noise whose density
        decays with its largest entry (the K-norm mechanism of the sup norm). The latter has up to
        six times less variance if one record changes most coefficients, as with Boolean features.
        "auto" takes what has less variance, by public quantities only. Regression always does.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    >>> model = BayesianNaiveBayes(mechanism=Fourier(noise="joint"), **declared).fit(X, y)
    >>> model.posterior_.released.laws
    (SupNorm(scale=Fraction(2, 1), sides=(1, 1, 1, 1, 1), grid=4),)
    """

    walks_splits: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "increment": [StrOptions({"calibrated", "paper"})],
        "stealth": [Range(Real, 0, 1, closed="left")],
        "t": [Range(Real, 0, None, closed="left")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(
        self,
        *,
        increment: str = "calibrated",
        stealth: float = 0.9,
        t: float = 2.3,
        noise: str = "auto",
    ) -> None:
        self.increment = increment
        self.stealth = stealth
        self.t = t
        self.noise = noise


class Sampler(Mechanism):
    """Release draws from the truncated and tempered posterior.

    Parameters
    ----------
    n_samples : int, default=1
        Number N of joint draws, which share the budget equally.
    omega : float in (0, 0.5), optional
        Probabilities of splits are truncated to [omega, 1 - omega]. By default 0.2, or less if the
        budget is more than enough for the posterior without tempering.
    n_points : int, optional
        Points of the grid per split; by default enough for a spacing below the width of the
        posterior.

    Examples
    --------
    >>> Sampler(n_samples=2).get_params()["n_samples"]
    2
    """

    walks_splits: ClassVar[bool] = True
    knows_rho: ClassVar[bool] = True

    @property
    def spends_delta(self) -> bool:
        """True: many draws, or of many tables, need less tempering with a delta."""
        return True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Range(Integral, 1, None, closed="left")],
        "omega": [Range(Real, 0, 0.5, closed="neither"), None],
        "n_points": [Range(Integral, 2, 2**16, closed="both"), None],
    }

    def __init__(
        self, n_samples: int = 1, *, omega: float | None = None, n_points: int | None = None
    ) -> None:
        self.n_samples = n_samples
        self.omega = omega
        self.n_points = n_points


class MAP(Mechanism):
    """Release one draw that concentrates on the maximum a posteriori tables or coefficients.

    The parameters are those of tables.

    Parameters
    ----------
    score : {"log_posterior", "posterior"}, default="log_posterior"
        Score of the exponential mechanism: the log posterior density, or the posterior mass of a
        grid point as in Zhang, Rubinstein and Dimitrakakis (2016).
    omega : float in (0, 0.5), default=0.1
        Probabilities of splits are truncated to [omega, 1 - omega].
    n_points : int, optional
        Points of the grid per split. By default 33 for ``score="posterior"``, otherwise enough for
        a spacing below the width of the posterior.

    Examples
    --------
    >>> MAP(omega=0.2).get_params()["score"]
    'log_posterior'
    """

    walks_splits: ClassVar[bool] = True

    @property
    def spends_delta(self) -> bool:
        """True: a regression with many columns needs less noise with a delta."""
        return True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "score": [StrOptions({"log_posterior", "posterior"})],
        "omega": [Range(Real, 0, 0.5, closed="neither")],
        "n_points": [Range(Integral, 2, 2**16, closed="both"), None],
    }

    def __init__(
        self, *, score: str = "log_posterior", omega: float = 0.1, n_points: int | None = None
    ) -> None:
        self.score = score
        self.omega = omega
        self.n_points = n_points


class Geometric(Mechanism):
    """Add noise that sums to zero to the counts of all categories.

    Any number of records and categories is possible.
    """


class LaplaceImproved(Mechanism):
    """Add discrete Laplace noise to all counts but the last, which completes the public total."""


class Exponential(Mechanism):
    """Exponential mechanism over posteriors: Hellinger distance over global sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Whether to scale the exponent until the exact worst-case loss equals epsilon. Takes
        seconds for thousands of candidates; the result is cached, by public facts only.
    distance : {"hellinger", "total_variation", "kl"}, default="hellinger"
        The distance of a candidate from the exact posterior by which it is scored: choose the one
        in which you measure the error. The guarantee of the others is by enumeration alone, so they
        need ``calibrate=True``. "total_variation" is for two categories.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibrate": ["boolean"],
        "distance": [StrOptions({"hellinger", "total_variation", "kl"})],
    }

    def __init__(self, calibrate: bool = True, distance: str = "hellinger") -> None:
        self.calibrate = calibrate
        self.distance = distance


class Hellinger(Exponential):
    """Exponential mechanism over posteriors: Hellinger distance over smooth sensitivity.

    Parameters
    ----------
    calibrate : bool, default=True
        Whether to scale the nominal budget until the exact worst-case loss equals epsilon; the
        guarantee is then pure. Otherwise the mechanism is that of the paper and needs a delta.
    smoothing : float in (0, 1), default=1e-8
        The delta in the formula of gamma if ``calibrate=True``, where it shapes the law but is
        not part of the guarantee. With ``calibrate=False`` the guarantee's delta is used.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibrate": ["boolean"],
        "smoothing": [Range(Real, 0, 1, closed="neither")],
    }

    def __init__(self, calibrate: bool = True, smoothing: float = 1e-8) -> None:
        super().__init__(calibrate)
        self.smoothing = smoothing

    @property
    def spends_delta(self) -> bool:
        """True if the guarantee needs a delta above zero."""
        return not self.calibrate


class Local(Exponential):
    """Exponential mechanism over posteriors: Hellinger distance over local sensitivity.

    The scale depends on the data, so it is always calibrated: otherwise it would not be private in
    general.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self) -> None:
        super().__init__()


# Mechanisms by the names that users pass.
_BY_NAME: dict[str, type[Mechanism]] = {
    cls.name(): cls
    for cls in (
        Auto,
        Exponential,
        Fourier,
        Gaussian,
        Geometric,
        Hellinger,
        Laplace,
        LaplaceImproved,
        Local,
        MAP,
        Sampler,
    )
}


def mechanism_class(name: str) -> type[Mechanism] | None:
    """Return the mechanism of that name, if there is one."""
    return _BY_NAME.get(name)


def registered_names(plan: Any) -> set[str]:
    """Return the names of the mechanisms that a dispatching function of plans takes."""
    names = (kind.name() for kind in plan.registry if kind is not object)
    return {name for name in names if mechanism_class(name) in plan.registry}


def resolve_mechanism(mechanism: str | Mechanism) -> Mechanism:
    """Return the mechanism of that name with its default options, or the one given."""
    return _BY_NAME[mechanism]() if isinstance(mechanism, str) else mechanism
