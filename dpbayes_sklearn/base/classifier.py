"""Base class of the classifiers over discrete networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import Range, StrOptions, _fit_context
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator, Where
from dpbayes_sklearn.base.published import draws_generator
from dpbayes_sklearn.base.remarks import ScoreMixin, advise_if_noisy, hint_at_absent_classes
from dpbayes_sklearn.base.spending import DELTA, once
from dpbayes_sklearn.base.supervised import Declared, ShardedEstimator, classes_declared
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network, check_cells
from dpbayes_sklearn.counts.plans import CountPlan
from dpbayes_sklearn.counts.posterior import NetworkPosterior, TemperedPosterior, ancestral_sample
from dpbayes_sklearn.counts.predict import (
    RowFunction,
    answer_by_row,
    log_joint,
    log_proba,
    log_sum,
    most_probable,
    proba,
    weighted,
)
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.counts.temperature import LabelledCounts, LossRecords, sizes_of_shares
from dpbayes_sklearn.data.encoder import Encoder, SparseCodes
from dpbayes_sklearn.data.persons import PROTECTION, WEIGHTS
from dpbayes_sklearn.data.reading import classes_from_data
from dpbayes_sklearn.data.records import Records, Table
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee, PrivacyUnit
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Domain, Schema
from dpbayes_sklearn.schema.declared import Bins
from dpbayes_sklearn.serialization.models import NETWORK_MODEL

_WRONG_HINT = 0.01  # A hint about classes is wrong with at most this probability.
PUBLIC_TYPES = "the dtypes of X do not depend on a record (n_bins='auto' uses them)"


class DiscreteClassifier(
    ScoreMixin, ClassifierMixin, ShardedEstimator[DirichletPrior, Any, NetworkPosterior]
):
    """A classifier whose model is a discrete network; subclasses say which.

    Its statistics are counts, and the records as well if the temperature is to be learned.
    """

    alpha: Any
    bounds: Any
    classes: Any
    inference: str
    n_bins: Any
    temperature: Any
    privacy_unit: PrivacyUnit | str
    schema: Schema | None
    _uses_codes = True

    _exported = NETWORK_MODEL
    _metric = staticmethod(accuracy_score)
    _unit_names = ("record", "feature")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        "mechanism": [StrOptions(plans.mechanism_names()), Mechanism],
        "inference": [StrOptions({"plug_in", "noise_aware", "adaptive"})],
        "temperature": [StrOptions({"auto"}), Range(Real, 0, 1, closed="right")],
        "alpha": [Range(Real, 0, None, closed="neither"), "array-like"],
        "classes": ["array-like", None],
        "bounds": ["array-like", None],
        "n_bins": [StrOptions({"auto"}), Range(Integral, 2, None, closed="left"), "array-like"],
        "schema": [Schema, None],
        **PROTECTION,
        **WEIGHTS,
    }

    @abstractmethod
    def _network(self, public: Schema) -> Network:
        """Return the graph of the model over the public domains."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add a batch of records of other people: a release of its own, charged on its own.

        The first batch settles what was not declared, and the bins of ``n_bins="auto"``, which
        follow from its number of records: give ``n_bins`` a number if it is small.

        Let a label of the person's own decide the batch, such as the hospital or the day of
        arrival. Rows 1 to 1000 of a table are no such batch: one record more moves others to the
        next batch, and the guarantee does not cover that.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Records of people who are in no other batch.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like, optional
            All classes, needed on the first call unless they are declared.
        groups : array-like of shape (n_samples,), optional
            If a person is the privacy unit: whose record it is; a person is in one batch only.
        sample_weight : array-like of shape (n_samples,), optional
            How often every record counts, as for ``fit``.

        Returns
        -------
        self
        """
        earlier = getattr(self, "_batches", ())
        if not earlier:
            first = copy(self)
            first.classes = self.classes if classes is None else classes
            if first._target.value is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            first.fit(X, y, groups, sample_weight=sample_weight)
            first.classes = self.classes
            return self._become(first)
        self._validate_params()  # which scikit-learn leaves out on later calls
        self._check_same_model(classes)
        public = self.schema_
        batch = copy(self)._fit(
            lambda fitted, facts: fitted._read(X, y, public, groups, facts, sample_weight),
            stream=len(earlier),
        )
        posterior = self.posterior_.merge(batch.posterior_)
        batches = (*earlier, batch.guarantee_)
        mechanisms = (*self._mechanisms, *batch._mechanisms)
        batch._attach_batches(public, posterior, batches)._mechanisms = mechanisms
        # a model of an older release has no record of its batches
        batch._proof = [*getattr(self, "_proof", [{}]), *batch._proof]
        return self._become(batch)

    def _check_same_model(self, classes: Any) -> None:
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError("classes must be the same on every call to partial_fit.")
        prior, before = self._prior(self.schema_), self._prior_in_use
        if prior.network != before.network:
            raise ValueError("parents must be the same on every call to partial_fit.")
        pairs = zip(prior.alphas, before.alphas, strict=True)
        options = [(p.inference, p.temperature) for p in (prior, before)]
        if options[0] != options[1] or not all(np.array_equal(*pair) for pair in pairs):
            raise ValueError(
                "alpha, inference and temperature must be the same on every call to partial_fit."
            )
        earlier = self._batches[0]
        now = self._mechanism.name(), self._declared_unit
        if now != (self._mechanisms[0].name(), earlier.privacy_unit):
            raise ValueError(
                "mechanism and privacy_unit must be the same on every call to partial_fit."
            )
        if self._budget().infinite != math.isinf(earlier.epsilon):
            raise ValueError(
                "epsilon must be finite on every call to partial_fit, or infinite on every call."
            )

    def _prior(self, public: Schema) -> DirichletPrior:
        """Return the prior of all tables."""
        network = self._network(public)
        check_cells(network)
        ordered = [domain.is_ordered for domain in public.columns.values()]
        return DirichletPrior(
            network, self._alphas(network), self.inference, (*ordered, False), self.temperature
        )

    def _statistics(
        self, public: Schema, prior: DirichletPrior, records: Records
    ) -> CountTables | LabelledCounts:
        encoder, skips = Encoder([*public.columns.values()]), self._skips_missing
        counts = records.total(
            partial(CountTables.of_shard, prior.network, encoder, public.classes, skips)
        )
        if self.temperature != "auto":
            return counts
        return LabelledCounts(counts, LossRecords(encoder, public.classes, records, skips))

    def _plan(self, prior: DirichletPrior, facts: Facts, budget: Budget) -> CountPlan:
        return plans.plan(self._mechanism, prior, facts, budget)

    def _structure(self, public: Schema) -> Network:
        return self._network(public)

    def _sizes(self, budget: Budget) -> tuple[int, ...]:
        if self.temperature != "auto":
            return super()._sizes(budget)
        # zCDP is convex in the share of the temperature: largest at an end
        return sizes_of_shares(Fraction(budget.unit.equivalent(Fraction(budget.epsilon))))

    def _check_shards(self) -> None:
        if self.temperature == "auto":
            raise ValueError(
                "temperature='auto' is learned from the records, which statistics of shards do not "
                "contain: set temperature to a number in (0, 1], such as 0.65."
            )
        domains = [] if self.schema is None else self.schema.columns.values()
        cut = all(domain.has_codes for domain in domains)
        if isinstance(self.n_bins, str) and not (cut and self.bounds is None):
            raise ValueError(
                "n_bins='auto' depends on the total number of records, which is not known for a "
                "shard: set n_bins to a number, or declare bins for every Interval."
            )

    @property
    def _uses_n(self) -> Where:  # type: ignore[override]
        return "in the schema" if isinstance(self.n_bins, str) else "in the plan"

    @once
    def _bounds(self) -> Declared:
        return Declared("bounds", self.bounds, "bounds of the features")

    @once
    def _target(self) -> Declared:
        return classes_declared(self.classes, self.schema)

    def _target_from_data(self, values: AnyArray) -> Domain:
        return classes_from_data(values)

    def _settle(
        self, declared: Sequence[Domain | None], domains: list[Domain], table: Table, n: int
    ) -> tuple[list[Domain], tuple[str, ...]]:
        """Cut every interval into bins."""
        splits = self._mechanism.walks_splits
        classes = self._target.value
        known = 2 if classes is None else classes.n_values
        epsilon = float(self._unit.equivalent(float(self._budget().epsilon)))
        bins = Bins(self.n_bins, n, table.n_columns, epsilon, splits, known)
        bins.check()
        cut = [bins.cut(domain, j, table.kind(j)) for j, domain in enumerate(domains)]
        looked = any(map(bins.looks_at_types, {*declared}))
        return cut, (PUBLIC_TYPES,) if looked else ()

    def _alphas(self, network: Network) -> tuple[FloatArray, ...]:
        """Return the pseudo-counts of every node: alpha, or one per feature and 1 for the class."""
        d = network.target
        try:
            alpha = np.asarray(self.alpha, np.float64)
        except (TypeError, ValueError, OverflowError):
            alpha = np.array(np.nan)
        if alpha.shape not in {(), (d,)} or not ((alpha >= 1e-100) & (alpha <= 1e12)).all():
            raise ValueError(
                f"alpha must be a positive number, or one for each of the {d} features, "
                "and at most 1e12."
            )
        per_node = [*np.broadcast_to(alpha, d), alpha if alpha.ndim == 0 else 1.0]
        return tuple(np.full(k, float(a)) for k, a in zip(network.sizes, per_node, strict=True))

    def _attach(self, public: Schema, release: Release[NetworkPosterior]) -> Self:
        return self._attach_batches(public, release.posterior, (release.guarantee,))

    def _attach_batches(
        self, public: Schema, posterior: NetworkPosterior, batches: tuple[PrivacyGuarantee, ...]
    ) -> Self:
        """Set the fitted attributes after batches of different people."""
        self.schema_ = public
        self.classes_ = public.classes.labels
        self.posterior_ = posterior
        self._batches = batches
        self._prior_in_use = self._prior(public)  # which no other value refers to
        self._mechanisms: tuple[Mechanism, ...] = (clone(self._mechanism),) * len(batches)
        self.guarantee_ = PrivacyGuarantee.parallel(batches)
        return self

    def _advise(self, plan: CountPlan, public: Schema, facts: Facts) -> None:
        ratio = plan.tables.noise_ratio()
        if ratio is not None:
            advise_if_noisy(ratio)

    def _hint(self) -> None:
        released = getattr(self.posterior_, "released", None)  # of draws there are no counts
        if released is None or self._target.value is None:
            return
        table = released.tables[-1]
        classes, cells = self.classes_.tolist(), table.size // len(self.classes_)
        counts = table.reshape(cells, -1).sum(axis=0)
        exact = math.isinf(self.guarantee_.epsilon)
        bound = 0.0 if exact else cells * self.utility_bound(_WRONG_HINT)
        hint_at_absent_classes(classes, counts, released.n, bound)

    def _restore(self, **released: Any) -> Self:
        public, posterior, batches = released.values()
        if getattr(posterior, "network", None) != self._network(public):
            raise ValueError("the posterior is not of the network that the parameters describe")
        return self._attach_batches(public, posterior, batches)

    def _of_joint(
        self, X: Any, of: RowFunction, like: AnyArray, *, tempered: bool = True
    ) -> AnyArray:
        """Return ``of`` log p(x, c) for all rows; of a dask collection, a lazy dask array."""
        check_is_fitted(self)
        posterior = self.posterior_ if tempered else self.posterior_.untempered
        encoder = Encoder([*self.schema_.columns.values()])
        return self._by_row(X, partial(answer_by_row, posterior, encoder, of, like), like)

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable class of every row."""
        check_is_fitted(self)
        return self._of_joint(X, partial(most_probable, self.classes_), self.classes_[:0])

    _predict_by_row = predict  # no row changes another, not even by rounding

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return ln p(x, c) of every row x and class c, with features believed by temperature."""
        return self._of_joint(X, np.asarray, self._no_rows)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log probability of every class for every row."""
        return self._of_joint(X, log_proba, self._no_rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every row."""
        return self._of_joint(X, proba, self._no_rows)

    @property
    def _no_rows(self) -> FloatArray:
        check_is_fitted(self)
        return np.empty((0, len(self.classes_)))

    def log_likelihood(self, X: Any) -> FloatArray:
        """Return log p(x) of every row, summed over the classes; of the plain model."""
        return self._of_joint(X, log_sum, np.empty(0), tempered=False)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Any, AnyArray]:
        """Return synthetic records ``(X, y)`` from the released posterior, at no further cost.

        One set of tables is drawn from the posterior, and all records from these tables. Binned
        numbers are spread evenly over their bin. X is a data frame of pandas if the model was
        fitted to columns with names and pandas is installed, with dates as dates; otherwise an
        array.
        """
        check_is_fitted(self)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        rng = draws_generator(1, random_state)
        tables = tuple(table[0] for table in self.posterior_.sample(rng, 1))
        records = ancestral_sample(self.posterior_.network, tables, n_samples, rng)
        domains = self.schema_.columns.values()
        columns = [domain.decode(records[:, j], rng) for j, domain in enumerate(domains)]
        y = self.classes_[records[:, -1]]
        if hasattr(self, "feature_names_in_") and (pandas := _pandas()) is not None:
            dated = [
                _as_dates(column) if getattr(domain, "dates", False) else column
                for domain, column in zip(domains, columns, strict=True)
            ]
            return pandas.DataFrame(dict(zip(self.schema_.columns, dated, strict=True))), y
        return np.stack(columns, axis=1), y

    def sample_targets(
        self, X: Any, n_draws: int = 100, random_state: int | np.random.RandomState | None = None
    ) -> AnyArray:
        """Return classes of the rows of X, drawn from the posterior predictive distribution.

        For every draw, tables are drawn from the released posterior, and then a class for every
        row. Their spread is that of the released posterior. Post-processing, at no further cost.
        They are an array of shape (n_draws, n_samples).
        """
        check_is_fitted(self)
        rng, codes = draws_generator(n_draws, random_state), self._codes_of(X)
        posterior = self.posterior_
        weights = posterior.weights if isinstance(posterior, TemperedPosterior) else None
        tables = posterior.sample(rng, n_draws)
        drawn = np.empty((n_draws, len(codes)), np.intp)
        for k in range(n_draws):
            with np.errstate(divide="ignore"):
                logs = weighted(tuple(np.log(table[k]) for table in tables), weights)
            shares = proba(log_joint(posterior.network, logs, codes)).cumsum(axis=1)
            drawn[k] = (shares[:, :-1] < rng.random((len(codes), 1))).sum(axis=1)
        return np.asarray(self.classes_[drawn])

    def _codes_of(self, X: Any) -> AnyArray:
        """Return the code of every cell, of records in memory."""
        encoder = Encoder([*self.schema_.columns.values()])
        parts = [
            some.dense() if isinstance(some, SparseCodes) else some.copy()
            for _, some in encoder.compact_chunks(self._rows_in_memory(X))
        ]
        return np.concatenate(parts)

    def utility_bound(self, delta: float = 0.05, n: int | None = None) -> float:
        """Return a bound on the error of the release that holds with probability 1 - delta.

        Parameters
        ----------
        delta : float, default=0.05
        n : int, optional
            Number of records of a fit to come; needs declared domains. A fitted estimator does
            without.

        Returns
        -------
        float
            Of counts ("laplace"), of tables ("fourier") or of answers ("sampler"): see the
            mechanism's ``utility_bound``.
        """
        if "posterior_" in self.__dict__:
            released = getattr(self.posterior_, "released", None)
            if released is not None:  # by the noise that was added, not the current parameters
                return float(released.error_bound(delta))
            share = delta / len(self._batches)  # draws of batches are averaged
            return max(
                plans.draws_error(m.name(), getattr(m, "n_samples", 1), share)
                for m in self._mechanisms
            )
        if n is None:
            raise ValueError("Before a fit, utility_bound needs the number n of records.")
        _, budget = self._shares(self._budget())
        prior = self._prior(self._declared_schema(n))
        return self._plan(prior, Facts(n), budget).tables.error_bound(delta)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # On the data of scikit-learn's accuracy checks (200 seeds each, 2 and 3 classes) the share
        # of fits above the required 0.83 is 0.98 and 0.96 for laplace, 1.00 and 1.00 for fourier,
        # 0.76 and 0.52 for sampler, 0.82 and 0.48 for map; (60 seeds) 1.00 and 1.00 for auto, 0.97
        # and 0.75 for gaussian, whose noise in two features is larger than that of laplace.
        name = self.mechanism.name() if isinstance(self.mechanism, Mechanism) else self.mechanism
        poor = isinstance(name, str) and name in {"sampler", "map", "gaussian"}
        tags.classifier_tags.poor_score = poor
        tags.input_tags.sparse = True
        return tags


def _pandas() -> Any:
    """Return pandas, None if it is not installed."""
    try:
        import pandas
    except ImportError:
        return None
    return pandas


def _as_dates(seconds: AnyArray) -> AnyArray:
    """Return dates for numbers of seconds since 1970; NaN is no date."""
    known = np.isfinite(seconds) & (np.abs(seconds) < 1e11)
    dates = np.where(known, seconds, 0.0).astype("int64").astype("datetime64[s]")
    return np.where(known, dates, np.datetime64("NaT", "s"))
