"""A schema whose ranges and bins are learned privately from a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpbayes_sklearn._compat import did_you_mean
from dpbayes_sklearn._presenting import remark
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.spending import DELTA
from dpbayes_sklearn.columns.plans import Found, FramePlan, NumbersAndTexts, TextCounts
from dpbayes_sklearn.columns.quantiles import Answers, QuantileQuestions, SortedColumns
from dpbayes_sklearn.data.frames import named_columns
from dpbayes_sklearn.data.persons import PROTECTION
from dpbayes_sklearn.data.reading import read_records, table_of
from dpbayes_sklearn.data.records import Records, is_frame
from dpbayes_sklearn.preprocessing.columns import LEAST, Columns, ColumnwiseTransformer, too_few
from dpbayes_sklearn.preprocessing.scalers import PrivateKBinsDiscretizer, PrivateMinMaxScaler
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema import Categories, Domain, Interval, Schema
from dpbayes_sklearn.schema.values import Kind

# Columns of these kinds get learned ranges.
NUMERIC_KINDS: frozenset[Kind] = frozenset({"integers", "numbers", "dates"})
# Columns of these kinds get learned categories.
TEXT_KINDS: frozenset[Kind] = frozenset({"text", "objects", "anything"})
OTHER = "other"
"""The category of all texts that were not found, and of whatever is no text."""
_BOOLEANS = Interval(0, 1, bins=2)  # The domain of booleans, which needs no learning.


class _Public(NamedTuple):
    """Number of records, names and kinds of all columns, and the positions of those to learn."""

    n: int
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    numbers: tuple[int, ...]
    texts: tuple[int, ...]


class _Asked(NamedTuple):
    """What is asked of the columns of numbers, and how many columns of texts there are."""

    questions: QuantileQuestions
    n_texts: int


@dataclass(eq=False, repr=False)
class FrameDomains(
    PrivateEstimator[Records, _Public, _Asked, NumbersAndTexts, tuple[Answers, Found]]
):
    """The domains of the columns of a data frame; :func:`learn_schema` describes its parameters."""

    _uses_n = "in the schema"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        **DELTA,
        **PROTECTION,
        "bins": [*PrivateKBinsDiscretizer._parameter_constraints["n_bins"][:1], None],
        "target": [str, None],
    }

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    bins: int | None = 8
    target: str | None = None
    privacy_unit: PrivacyUnit | str = "record"
    accountant: BudgetAccountant | None = None
    random_state: int | np.random.RandomState | None = None

    def _delta(self, infinite: bool = False) -> Fraction:
        return Fraction(0) if infinite else self._declared_delta()  # for texts

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        own: Any = {"may_be_empty": self._unit.size_is_secret, "width": self._width(reset)}
        return read_records(self, X, labelled=False, reset=reset, **own)

    @property
    def _declared_width(self) -> None:
        """Nothing is declared: that is what is learned."""

    def _public_schema(self, records: Records, n: int) -> tuple[_Public, tuple[str, ...]]:
        table = records.table
        kinds = [table.kind(j) for j in range(table.n_columns)]
        numbers = tuple(j for j, kind in enumerate(kinds) if kind in NUMERIC_KINDS)
        texts = tuple(j for j, kind in enumerate(kinds) if kind in TEXT_KINDS)
        names = tuple(table.names or map(str, range(table.n_columns)))
        return _Public(n, names, tuple(kinds), numbers, texts), ()

    def _statistics(self, public: _Public, prior: _Asked, records: Records) -> NumbersAndTexts:
        texts = records.total(partial(TextCounts.of_shard, public.texts))
        return NumbersAndTexts(SortedColumns(records, public.numbers), texts)

    def _prior(self, public: _Public) -> _Asked:
        _, rest = self._shares(self._budget())
        epsilon = float(rest.epsilon) / len(public.names)
        columns = Columns(public.n, (None,) * len(public.numbers), epsilon, rest.unit)
        questions = (
            self._cutter(public.names[j])._questions(i, columns)
            for i, j in enumerate(public.numbers)
        )
        return _Asked(QuantileQuestions(tuple(questions)), len(public.texts))

    def _plan(self, prior: _Asked, facts: Facts, budget: Budget) -> FramePlan:
        return FramePlan.of(*prior, budget)

    def _cutter(self, name: str) -> ColumnwiseTransformer:
        """Return what asks a column of numbers for its range, or for bins."""
        only_range = self.bins is None or name == self.target
        return PrivateMinMaxScaler() if only_range else PrivateKBinsDiscretizer(self.bins or 2)

    def _advise(self, plan: Any, public: _Public, facts: Facts) -> None:
        """Refuse what would be noise; if the number of records is secret, one is released, too."""
        if not public.numbers:
            return
        columns = len(public.numbers) + len(public.texts)
        reason = too_few(facts.n, plan.cost, columns, LEAST)
        if reason and not self._unit.size_is_secret:
            raise ValueError(f"{reason} Nothing was spent.")
        if reason := too_few(facts.n, plan.cost, columns):
            remark(reason)

    def _attach(self, public: _Public, release: Release[tuple[Answers, Found]]) -> Self:
        answers, texts = release.posterior
        found: dict[int, Domain] = {
            j: interval(answer, public.kinds[j])
            for j, answer in zip(public.numbers, answers, strict=True)
        }
        for j, common in zip(public.texts, texts, strict=True):
            classes = public.names[j] == self.target and len({*common} - {OTHER}) > 1
            other = [] if classes else [OTHER]
            found[j] = Categories(dict.fromkeys([*common, *other]), unseen=(other or common)[0])
        self.domains_ = {name: found[j] for j, name in enumerate(public.names)}
        self.guarantee_ = release.guarantee
        return self

    def _restore(self, **released: Any) -> Self:
        raise ValueError("domains have the JSON form of a schema")


def interval(answers: tuple[float, ...], kind: Kind) -> Interval:
    """Return an interval that is never empty, from its ends and the edges between them, if any.

    Outer bins are as wide as their neighbours, but end where the range does.

    A quantile is found as a whole number, out of all floats, if many records share it. If two
    neighbours such as 0 and 1 are the only ones, a column of integers has no other value that
    counts. With 3,000 and 15,000 records for each unit of the column's epsilon, columns of two
    such values were recognised in 86 of 96 releases, and none of 96 with more values was taken for
    one; with 900 records a third value that 5 % have is overlooked.

    >>> interval((-3.9, -2.5, 0.0, 0.7, 1.0, 4.2), "integers")
    Interval(low=0.0, high=1.0, bins=2)
    """
    low, *edges, high = answers
    whole = sorted({answer for answer in answers if answer.is_integer()})
    if edges and kind == "integers" and len(whole) == 2 and whole[1] - whole[0] == 1:
        return Interval(whole[0], whole[1], bins=2)
    if len(edges) > 1:
        low, high = max(low, 2 * edges[0] - edges[1]), min(high, 2 * edges[-1] - edges[-2])
    most = 2.0**1000
    low, high = max(low, -most), min(high, most)
    wide = max(1.0, abs(low)) * 2.0**-20
    if high - low < wide:  # all records may have one value
        low, high = low - wide, low + wide
    return Interval(low, high, dates=kind == "dates", edges=edges or None)


def learn_schema(
    frame: Any,
    epsilon: float = 1.0,
    *,
    columns: Mapping[str, Domain] | None = None,
    target: Domain | str | None = None,
    bins: int | None = 8,
    delta: float = 0.0,
    privacy_unit: PrivacyUnit | str = "record",
    groups: Any = None,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = True,
) -> Schema:
    """Return a schema of a data frame, with ranges and bins of its numbers learned privately.

    Parameters
    ----------
    frame : data frame or dask data frame
        Records, one per person unless a person is the privacy unit; only columns of the schema.
    epsilon : float, default=1.0
        Privacy budget, shared equally by the columns that are learned. Each of them needs 200
        records divided by epsilon; with fewer a message says so before anything is spent, and with
        fewer than 100 the call is refused.
    columns : mapping of str to Interval or Categories, optional
        Columns that are declared. All others must be numbers, booleans or dates by their type, or,
        with a ``delta``, texts. Booleans cost nothing.
    target : Interval, Categories or str, optional
        Public domain of a target that is not a column of ``frame``, or the name of a column of it:
        its range is then learned, too, or, of texts, the classes that many records share.
    bins : int or None, default=8
        Number of bins with about as many records each, for classifiers, within the range from the
        1 % to the 99 % quantile. None learns the range alone, for a regression. Integers of which
        the release shows but two, such as 0 and 1, get a bin each.
    delta : float in [0, 1), default=0.0
        Finds the categories of columns of text if it is above zero: texts that many records share.
        All others, and whatever is no text, count as "other". With k columns to learn, t of them
        texts, one is found if about ``2k/epsilon * log(t/delta)`` records share it (of a person's
        m records together: m times as many). Delta should be far below one over the number of
        records.
    privacy_unit : "record" or PrivacyUnit, default="record"
        Who is protected: one record, all records of a person, or whether they are there at all.
        See :class:`PrivacyUnit`.
    groups : array-like of shape (n_samples,), optional
        If a person is the privacy unit: whose record it is, also as the name of a column of
        ``frame``, which is then no column of the schema.
    accountant : BudgetAccountant, optional
        The ledger that is charged; one that is open in a ``with`` block if left out.
    random_state : int, RandomState or None, default=None
        None draws from the operating system's secure source; seeds are for tests and papers.
    verbose : bool, default=True
        Print what was decided.

    Returns
    -------
    Schema
        With the ``guarantee`` of what was learned; :meth:`Schema.to_json` keeps the domains.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from dpbayes_sklearn import Categories, Schema
    >>> rng = np.random.default_rng(0)
    >>> wage, sex = rng.lognormal(7, 1, 5_000), rng.choice(["f", "m"], 5_000)
    >>> frame = pd.DataFrame({"wage": wage, "sex": sex})
    >>> schema = Schema.learn(
    ...     frame, 0.5, columns={"sex": Categories(["f", "m"])}, bins=4, random_state=0
    ... )
    wage: 4 bins between [...] (learned)
    sex: 2 categories (declared)
    Differentially private with epsilon = 0.5 under the domains mechanism, ...
    >>> schema.columns["wage"].n_values, schema.guarantee.epsilon
    (4, 0.5)
    """
    declared = {str(name): domain for name, domain in (columns or {}).items()}
    frame, _, (groups,) = named_columns(frame, None, None, groups)
    if not is_frame(frame):
        raise TypeError("Schema.learn takes a data frame, whose columns have names and types.")
    table = table_of(frame)
    names = table.names or []
    if unknown := [name for name in declared if name not in names]:
        raise ValueError(
            f"The frame lacks the columns {unknown} that are declared."
            f"{did_you_mean(unknown[0], {*names} - {*declared})}"
        )
    if isinstance(target, str) and target not in names:
        raise ValueError(
            f"The frame lacks the column {target!r} that is the target."
            f"{did_you_mean(target, names)}"
        )
    kinds = {name: table.kind(j) for j, name in enumerate(names) if name not in declared}
    known = {name: _BOOLEANS for name, kind in kinds.items() if kind == "booleans"} | declared
    kinds = {name: kind for name, kind in kinds.items() if name not in known}
    texts = [name for name, kind in kinds.items() if kind not in NUMERIC_KINDS]
    if refused := [name for name in texts if not delta or kinds[name] not in TEXT_KINDS]:
        raise ValueError(
            f"The columns {refused} hold no numbers or dates by their type: declare them, as in "
            f"columns={{{refused[0]!r}: Categories([...])}}, or leave them out. Dates are read as "
            f"dates with pandas.read_csv(..., parse_dates=[{refused[0]!r}]). Categories of texts "
            "are found with a delta, as in delta=1e-6. Nothing was spent."
        )
    found: dict[str, Domain] = {}
    guarantee: PrivacyGuarantee | None = None
    if kinds:
        learner = FrameDomains(
            epsilon,
            delta=delta if texts else 0.0,
            bins=bins,
            target=target if isinstance(target, str) else None,
            privacy_unit=privacy_unit,
            accountant=accountant,
            random_state=random_state,
        ).fit(frame[[*kinds]], groups=groups)
        found, guarantee = learner.domains_, learner.guarantee_
    domains = {name: known.get(name) or found[name] for name in names}
    if verbose:
        for name, domain in domains.items():
            source = "learned" if name in found else "declared" if name in declared else "boolean"
            print(f"{name}: {_in_words(domain)} ({source})")
        print(guarantee or "Nothing was learned, and nothing was spent.")
    own = domains.pop(target) if isinstance(target, str) else target
    return Schema(domains, own, guarantee)


def _in_words(domain: Domain) -> str:
    """Return a domain in few words; a released one of a single category is of no use."""
    if isinstance(domain, Categories) and domain.values == (OTHER,):
        return (
            "no text is shared by many records. Read dates as dates, for instance with "
            "parse_dates; leave out names and numbers of people"
        )
    bins = isinstance(domain, Interval) and domain.has_codes
    return f"{domain.n_values} bins between {domain.short}" if bins else domain.short


Schema.learn = staticmethod(learn_schema)
