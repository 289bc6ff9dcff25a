r"""How counts are released: a plan for each mechanism, then the temperature.

Guarantee
---------
The proofs for the tables stand with the mechanisms' options. *The temperature*. *Precondition*:
the tables were released before; given them, neighbours change the sums of clipped losses of all
candidate temperatures by numbers that lie within a range of R. *Claim*: the choice is
:math:`\varepsilon_t`-DP, and with the tables at :math:`\varepsilon - \varepsilon_t` the release is
:math:`\varepsilon`-DP. *Proof*: permute-and-flip with scores
:math:`\log w - \varepsilon_t S/R`, :math:`\varepsilon_t` less what rounding to integers can
add (a change that all scores share cancels); adaptive composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial, singledispatch
from math import prod
from operator import add, attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.counts import dirichlet
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import (
    Blocks,
    CharacterSums,
    ReleasedCharacters,
    paper_increment,
    simulated_noise,
    stealth_increment,
    sum_count,
    tables_from_characters,
)
from dpbayes_sklearn.counts.posterior import DrawsPosterior, NetworkPosterior, TemperedPosterior
from dpbayes_sklearn.counts.splits import draw_tables, rounded_up
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts, Tables
from dpbayes_sklearn.counts.temperature import (
    DEFAULT,
    TEMPERINGS,
    LabelledCounts,
    LossSums,
    Tempering,
    share_of_temperature,
    stride,
    tempering_weights,
    untaught,
)
from dpbayes_sklearn.mechanisms import (
    MAP,
    Auto,
    Fourier,
    Gaussian,
    Laplace,
    Mechanism,
    Sampler,
    registered_names,
)
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.discrete_gaussian import drawable
from dpbayes_sklearn.noise.finite import Choice
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import Budget, Exact, exact
from dpbayes_sklearn.privacy.gaussian import calibrated_variance, gaussian_rho
from dpbayes_sklearn.release import (
    Facts,
    OneStepPlan,
    Step,
    StepPlan,
    composed,
    drawn_sample,
    less_noise,
)

NO_BOUND = (
    "The {} mechanism has no utility bound that does not depend on the data; see "
    "theory.map_score_gap."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TablesPlan(OneStepPlan[CountTables, NetworkPosterior]):
    """A release of all tables of a network; the cost is that of the tables alone."""

    prior: DirichletPrior
    facts: Facts

    @property
    def tables(self) -> TablesPlan:
        """The plan of the tables: this one."""
        return self

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the error of the release."""
        raise ValueError(NO_BOUND.format(self.mechanism))

    def noise_ratio(self) -> float | None:
        """Return noise over expected count of a cell, on average, or None if it is not public."""
        return None

    def simulated_errors(self, at_least: int) -> FloatArray | None:
        """Return errors of released counts in many releases, or None if they depend on the data."""
        return None

    @property
    def structure(self) -> dict[str, Any]:
        """The network, for which None stands as parents if it is a star."""
        network = self.prior.network
        parents = None if network.is_star else network.parents
        return {"kind": "tables", "sizes": network.sizes, "parents": parents}

    @property
    def what(self) -> str:
        """The tables."""
        return f"{sum(map(prod, self.prior.network.shapes))} counts of all tables"


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactTables(TablesPlan):
    """No noise: no privacy is asked for."""

    law: None = None

    def ask(self, statistics: CountTables, known: None) -> ReleasedCounts:
        """Return the exact tables."""
        return statistics.without_noise()

    def read(self, known: None, answer: ReleasedCounts) -> NetworkPosterior:
        """Return the exact posterior."""
        return self.prior.update(answer)

    def error_bound(self, delta: float) -> float:
        """Return 0."""
        return 0.0

    def simulated_errors(self, at_least: int) -> FloatArray:
        """Return no error."""
        return np.zeros(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTables(TablesPlan):
    """Noise in every cell of every table."""

    law: NoiseLaw

    def ask(self, statistics: CountTables, known: None) -> Tables:
        """Return the tables."""
        return with_public_cells(statistics.tables, self.law, self.facts.n)

    def read(self, known: None, answer: Tables) -> NetworkPosterior:
        """Return the posterior given noisy tables."""
        n, size_laws = self.facts.n, self.facts.laws
        released = ReleasedCounts(self.prior.network, answer, n, (self.law,), size_laws)
        return self.prior.update(released)

    def beats(self, other: NoisyTables) -> bool:
        """Tell whether this has less variance on average over the released counts."""
        return bool(self.law.variances.mean() < other.law.variances.mean())

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the largest error of a released count."""
        return self.law.error_bound(delta)

    def noise_ratio(self) -> float:
        """Return noise over expected count of a cell, on average over all tables."""
        shapes = self.prior.network.shapes
        deviations = [math.sqrt(self.law.variance(u)) for u in range(len(shapes))]
        noise = sum(s * prod(shape) for s, shape in zip(deviations, shapes, strict=True))
        return noise / (max(self.facts.n, 1) * len(deviations))

    def simulated_errors(self, at_least: int) -> FloatArray:
        """Return noises of all cells in many releases."""
        law, factor = self.law.standard
        # joint noise takes longer to draw
        noises = at_least if law.independent else at_least // 5
        return factor / law.grid * _simulated(law, 1 + noises // law.size)


def with_public_cells(tables: Tables, law: NoiseLaw, n: int) -> Tables:
    """Return the tables; one of a single cell gets no noise and holds the public n."""
    public = (t.size == 1 and not law.variance(u) for u, t in enumerate(tables))
    pairs = zip(tables, public, strict=True)
    return tuple(np.full_like(t, n) if known else t for t, known in pairs)


@lru_cache(maxsize=16)
def _simulated(law: NoiseLaw, count: int) -> FloatArray:
    """Return absolute noises of a law from a fixed generator: public numbers."""
    return np.abs(Noise(random_source(0)).draw(law, count)).astype(float)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCharacters(TablesPlan):
    """Noise in every character sum of the tables."""

    law: NoiseLaw
    options: Fourier

    @cached_property
    def increment(self) -> float:
        """How much the constant character is raised: a simulation of the public noise."""
        network, options = self.prior.network, self.options
        if options.increment == "calibrated":
            return stealth_increment(network, self.law, options.stealth)
        # whole, so that tables stay exact in floating point and agree bit for bit
        return math.ceil(paper_increment(network, float(self.cost.epsilon), options.t))

    @property
    def structure(self) -> dict[str, Any]:
        """Characters of the same network."""
        return {**super().structure, "kind": "characters"}

    def ask(self, statistics: CountTables, known: None) -> Blocks:
        """Return the character sums."""
        return CharacterSums.of(statistics).blocks

    def draw(self, exact: Blocks, law: NoiseLaw, noise: Noise) -> Blocks:
        """Add noise."""
        return dict(zip(exact, noise.add([*exact.values()], law), strict=True))

    def read(self, known: None, answer: Blocks) -> NetworkPosterior:
        """Return the posterior given noisy sums."""
        (n, size_laws), network = (self.facts.n, self.facts.laws), self.prior.network
        return self.prior.update(
            ReleasedCharacters(network, answer, n, (self.law,), self.increment, size_laws)
        )

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the L1 error of any table, the public increment left out."""
        return (max(map(prod, self.prior.network.shapes)) - 1) * self.law.error_bound(delta)

    def simulated_errors(self, at_least: int) -> FloatArray:
        """Return noises of all cells in many releases, the public increment left out."""
        network = self.prior.network
        cells = sum(map(prod, network.shapes))
        blocks = simulated_noise(network, self.law, 1 + at_least // cells, Noise(random_source(0)))
        tables = tables_from_characters(network, blocks, 0)
        return np.concatenate([np.abs(table).ravel() for table in tables])

    @property
    def in_words(self) -> str:
        """The noise, and the number of sums that get it."""
        return f"{type(self.law).__name__} noise in {sum_count(self.prior.network)} sums"


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnTables(TablesPlan):
    """Draws of all tables from a public grid."""

    law: dirichlet.TemperedLaw | dirichlet.MassLaw
    n_draws: int = 1
    most: int | None = None
    """Turns of a split are cut here, if the number of records is secret."""

    @property
    def structure(self) -> dict[str, Any]:
        """Splits of the same network, the records at one of them at most, and the draws."""
        turns, draws = dirichlet.most_turns(self.facts)[0], self.n_draws
        return {**super().structure, "kind": "splits", "turns": turns, "draws": draws}

    def ask(self, statistics: CountTables, known: None) -> Tables:
        """Return the tables."""
        return statistics.tables

    def draw(self, exact: Tables, law: Any, noise: Noise) -> Tables:
        """Draw tables of probabilities."""
        return draw_tables(exact, law.log_weights, law.grid, self.n_draws, noise, self.most)

    def read(self, known: None, answer: Tables) -> NetworkPosterior:
        """Return the posterior given the draws."""
        weights = np.full(self.n_draws, max(self.facts.n, 1) / self.n_draws)
        return DrawsPosterior(self.prior.network, answer, weights)

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on averages over draws; the most probable tables have none."""
        return draws_error(self.mechanism, self.n_draws, delta)

    @property
    def in_words(self) -> str:
        """How many draws there are, and of what."""
        omega, many = self.law.grid.omega, f"draw{'s' * (self.n_draws > 1)}"
        return f"{self.n_draws} {many} of probabilities in [{omega:.3g}, {1 - omega:.3g}]"


def draws_error(mechanism: str, n_draws: int, delta: float) -> float:
    """(1 - delta) bound on the average over draws of any query with values in [0, 1].

    Against its mean under the tempered posterior; a draw of the most probable tables has none.
    """
    if mechanism != Sampler.name():
        raise ValueError(NO_BOUND.format(mechanism))
    return dirichlet.averaging_error(n_draws, delta)


@dataclass(frozen=True, kw_only=True, eq=False)
class AtTemperature(StepPlan[CountTables, NetworkPosterior]):
    """The tables, believed at a given temperature."""

    tables: TablesPlan
    tempering: Tempering

    @property
    def steps(self) -> tuple[Step[CountTables, Any], ...]:
        """The tables."""
        return self.tables.steps

    def posterior(self, known: NetworkPosterior) -> TemperedPosterior:
        """Return the posterior at the temperature."""
        return TemperedPosterior(known, self.tempering, self.tables.facts.n)


@dataclass(frozen=True, kw_only=True, eq=False)
class LearnsTemperature(StepPlan[LabelledCounts, NetworkPosterior]):
    """The tables, then the temperature at which they are believed."""

    tables: TablesPlan
    # Epsilon of the second step; 0 if there are too few records to learn a temperature.
    share: Exact
    start = ()

    @cached_property
    def steps(self) -> tuple[Step[LabelledCounts, Any], ...]:
        """The tables and the temperature."""
        tables = tuple(step.of_part(attrgetter("counts")) for step in self.tables.steps)
        if not self.share:
            return tables
        own, classes = Budget(self.share, unit=self.cost.unit), self.tables.prior.network.sizes[-1]
        law = Choice(self.share, LossSums.none(classes).spread(self.cost.unit))
        about = f"temperature, one of {len(TEMPERINGS)}", own, law, "permute-and-flip"
        structure = {"kind": "losses", "classes": classes}
        step = partial(Step, *about, structure=structure)
        return (*tables, step(ask=self._losses, draw=self._choose, read=add))

    def _losses(self, statistics: LabelledCounts, known: tuple[Any]) -> Callable[..., LossSums]:
        """Return what asks records, or a sample of them, for their losses."""
        return partial(statistics.records.loss_sums, *known)

    def _choose(
        self, loss_sums: Callable[..., LossSums], law: Choice, noise: Noise
    ) -> tuple[Tempering]:
        """Choose one of the candidates."""
        candidates, share = [*TEMPERINGS], law.epsilon
        if self.cost.infinite:  # no privacy is asked for
            return (candidates[int(np.argmin(loss_sums().sums))],)
        n, unit = self.tables.facts.n, self.cost.unit
        losses = loss_sums(drawn_sample(n, stride(n, float(share)), unit, noise))
        if unit.size_is_secret:
            losses = losses.at_most(self.tables.facts.n_bound)

        def weights(scores: IntArray) -> npt.NDArray[np.uint64]:
            return tempering_weights(replace(losses, sums=-scores), float(share), unit)

        most = losses.sensitivity(unit)
        others = 0 if unit.size_is_secret else most  # who comes or goes moves all in one way
        return (candidates[noise.choose_by(-losses.sums, weights, most, others)],)

    def posterior(self, known: tuple[Any, ...]) -> TemperedPosterior:
        """Return the posterior, at a public temperature if none was learned."""
        tables, *chosen = known
        tempering = chosen[0] if chosen else default_tempering(tables)
        return TemperedPosterior(tables, tempering, self.tables.facts.n)


def default_tempering(posterior: NetworkPosterior) -> Tempering:
    """Return the temperature that no record is asked about: a function of what was released."""
    if not posterior.network.is_star:
        return DEFAULT
    entropy = float(entr(posterior.mean()[-1]).sum())
    return untaught(float(posterior.information.sum()), entropy)


CountPlan = TablesPlan | AtTemperature | LearnsTemperature


def plan(mechanism: Mechanism, prior: DirichletPrior, facts: Facts, budget: Budget) -> CountPlan:
    """Return how tables, and a temperature that is to be learned, are released.

    >>> from dpbayes_sklearn.counts.network import Network
    >>> star = Network.star([2, 2], 2)
    >>> prior = DirichletPrior(star, tuple(np.ones(k) for k in star.sizes))
    >>> made = plan(Auto(), prior, Facts(100), Budget(Fraction(1)))
    >>> made.mechanism, made.cost.epsilon, made.law
    ('laplace', Fraction(1, 1), ...)
    """
    share = share_of_temperature(prior.temperature, facts.n, budget)
    own = budget
    if not budget.infinite:
        own = budget._replace(epsilon=budget.epsilon - share, pure_epsilon=share)
    make: Callable[..., TablesPlan] = tables_plan.dispatch(type(mechanism))
    if budget.infinite and make is not tables_plan.dispatch(object):
        make = _exact
    tables = make(mechanism, prior, facts, own)
    if prior.temperature == 1:
        return tables
    cost, name = composed([tables.cost, Budget(share, unit=budget.unit)]), tables.mechanism
    if prior.temperature == "auto":
        return LearnsTemperature(cost=cost, mechanism=name, tables=tables, share=share)
    tempering = Tempering(float(prior.temperature))
    return AtTemperature(cost=cost, mechanism=name, tables=tables, tempering=tempering)


@singledispatch
def tables_plan(
    mechanism: Mechanism, prior: DirichletPrior, facts: Facts, budget: Budget
) -> TablesPlan:
    """Return how tables are released, by the type of the mechanism; others are refused."""
    raise ValueError(f"The {mechanism.name()} mechanism cannot release counts statistics.")


def mechanism_names() -> set[str]:
    """Return the names of the mechanisms that release counts.

    >>> sorted(mechanism_names())
    ['auto', 'fourier', 'gaussian', 'laplace', 'map', 'sampler']
    """
    return registered_names(tables_plan)


def _public(mechanism: Mechanism, prior: DirichletPrior, facts: Facts) -> dict[str, Any]:
    """Return what all plans of tables have in common."""
    return {"mechanism": mechanism.name(), "prior": prior, "facts": facts}


@tables_plan.register
def _laplace(
    mechanism: Laplace, prior: DirichletPrior, facts: Facts, budget: Budget
) -> NoisyTables:
    structure = CountTables(prior.network, (), facts.n_bound)
    weight = Fraction(exact(mechanism.budget_split, "budget_split"))
    law = structure.law(mechanism.noise, budget.unit, Fraction(budget.epsilon), weight)
    return NoisyTables(cost=budget.without_delta, law=law, **_public(mechanism, prior, facts))


@tables_plan.register
def _gaussian(
    mechanism: Gaussian, prior: DirichletPrior, facts: Facts, budget: Budget
) -> NoisyTables:
    structure = CountTables(prior.network, (), facts.n_bound)
    shifts = structure.shifts(budget.unit)
    variance = calibrated_variance(budget)(shifts) if shifts else Fraction(0)
    law = drawable(structure.gaussian_law(budget.unit, variance))
    cost = budget._replace(rho=gaussian_rho(variance, shifts) if shifts else Fraction(0))
    return NoisyTables(cost=cost, law=law, **_public(mechanism, prior, facts))


@tables_plan.register
def _(mechanism: Auto, prior: DirichletPrior, facts: Facts, budget: Budget) -> TablesPlan:
    public = prior, facts, budget
    return less_noise(_laplace(Laplace(), *public), lambda: _gaussian(Gaussian(), *public))


@tables_plan.register
def _(mechanism: Fourier, prior: DirichletPrior, facts: Facts, budget: Budget) -> NoisyCharacters:
    structure = CharacterSums(prior.network, {}, facts.n_bound)
    law = structure.law(mechanism.noise, budget.unit, Fraction(budget.epsilon))
    return NoisyCharacters(
        cost=budget.without_delta, law=law, options=mechanism, **_public(mechanism, prior, facts)
    )


@tables_plan.register
def _(mechanism: Sampler, prior: DirichletPrior, facts: Facts, budget: Budget) -> DrawnTables:
    turns, most = dirichlet.most_turns(facts)
    law = dirichlet.sampler_law(mechanism, prior, turns, budget)
    delta = budget.delta if law.loss > budget.epsilon else Fraction(0)
    return DrawnTables(
        cost=budget._replace(delta=delta, rho=rounded_up(law.rho)),
        law=law,
        n_draws=mechanism.n_samples,
        most=most,
        **_public(mechanism, prior, facts),
    )


@tables_plan.register
def _(mechanism: MAP, prior: DirichletPrior, facts: Facts, budget: Budget) -> DrawnTables:
    turns, most = dirichlet.most_turns(facts)
    law, public = dirichlet.mode_law(mechanism, prior, turns, budget), (mechanism, prior, facts)
    return DrawnTables(cost=budget.without_delta, law=law, most=most, **_public(*public))


def _exact(
    mechanism: Mechanism, prior: DirichletPrior, facts: Facts, budget: Budget
) -> ExactTables:
    return ExactTables(cost=budget.without_delta, **_public(mechanism, prior, facts))
