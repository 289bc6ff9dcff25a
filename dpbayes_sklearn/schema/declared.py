"""What a user declares: a schema by column name, with its card and JSON form, or bounds.

Every field of the JSON is checked when it is read back. An interval is ``{"low", "high", "bins",
"dates"}``, with ``"edges"`` if it has any and ``"missing"`` if missing values do not go to the
middle, categories are ``{"values", "unseen", "dtype"}``, and a schema is ``{"columns": {name:
domain}, "target": domain or null}``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar

import numpy as np

from dpbayes_sklearn._compat import did_you_mean
from dpbayes_sklearn._presenting import QUIET, card, table, tag
from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.schema.domains import MOST_BINS, Categories, Domain, Interval, is_json_label
from dpbayes_sklearn.schema.values import WHOLE_KINDS, Kind, as_cells, cells_of, is_missing

D = TypeVar("D", Interval, Categories)

# More values of one hash would make a table of them slow, and are refused.
_MOST_OF_ONE_HASH = 1000

_SHOWN = 4  # Columns that the code of a schema shows.
CARD_COLUMNS = ("column", "domain", "other values count as")
NOT_PRIVATE = "Not private: these counts are exact. Do not publish them."
"""What is printed above counts of values outside their domain."""
_FEW_INTEGERS = 32  # An interval of up to this many integers gets a bin for each.
_MOST_AUTO_BINS = 16  # n_bins="auto" makes no more bins than this.


class NotTheForm(ValueError):
    """Unexpected JSON: where, and what the rule is."""


def refuse(where: str, what: str) -> NoReturn:
    """Raise the error of a place in a JSON text."""
    raise NotTheForm(f"{where} {what}") from None


def read_fields(json: object, names: Iterable[str], where: str) -> dict[str, Any]:
    """Return a JSON object that has these fields, no fewer and no more."""
    if not isinstance(json, dict):
        refuse(where, "must be an object")
    if missing := {*names} - set(json):
        refuse(where, f"lacks {', '.join(sorted(missing))}")
    if len(json) > len({*names}):
        refuse(where, "has an unknown field")
    return json


def read_domain(json: object, where: str) -> Domain:
    """Return the domain that an object describes."""
    categories = isinstance(json, dict) and "values" in json
    return read_categories(json, where) if categories else read_interval(json, where)


def read_interval(json: object, where: str) -> Interval:
    """Return an interval."""
    optional = [name for name in ("edges", "missing") if isinstance(json, dict) and name in json]
    given = read_fields(json, ("low", "high", "bins", "dates", *optional), where)
    for name in ("low", "high"):
        if type(given[name]) is not float or not math.isfinite(given[name]):
            refuse(f"{where}.{name}", "must be a finite float")
    bins = given["bins"]
    if bins is not None and not (type(bins) is int and 2 <= bins <= MOST_BINS):
        refuse(f"{where}.bins", f"must be null or an integer from 2 to {MOST_BINS}")
    if type(given["dates"]) is not bool:
        refuse(f"{where}.dates", "must be true or false")
    edges = given.get("edges", [])
    floats = isinstance(edges, list) and all(type(edge) is float for edge in edges)
    if not floats or len(edges) >= MOST_BINS:
        refuse(f"{where}.edges", f"must be a list of fewer than {MOST_BINS} floats")
    if type(given.get("missing", "middle")) not in (str, float):
        refuse(f"{where}.missing", "must be middle, indicator or a float")
    return _made(Interval, given, where)


def read_categories(json: object, where: str) -> Categories:
    """Return categories."""
    given = read_fields(json, ("values", "unseen", "dtype"), where)
    values = given["values"]
    if not isinstance(values, list) or not values:
        refuse(f"{where}.values", "must be a list of at least 1")
    for i, value in enumerate(values):
        if not is_json_label(value):
            refuse(f"{where}.values[{i}]", "must be a string, boolean, number or null")
    if not is_json_label(given["unseen"]):
        refuse(f"{where}.unseen", "must be a string, boolean, number or null")
    if not isinstance(given["dtype"], str | None):
        refuse(f"{where}.dtype", "must be a string or null")
    refuse_same_hash(values, f"{where}.values")
    return _made(Categories, given, where)


def _made(domain: type[D], given: Mapping[str, Any], where: str) -> D:
    try:
        return domain(**given)
    except ValueError as error:
        refuse(where, f"is not valid ({error})")


def refuse_same_hash(values: Iterable[object], where: str) -> None:
    """Refuse values made to have one hash: a set of them would take forever."""
    if max(Counter(map(hash, values)).values(), default=0) > _MOST_OF_ONE_HASH:
        refuse(where, "has too many values of one hash")


class Outside(NamedTuple):
    """Values of a column that a domain does not hold: those that are there, and missing ones."""

    outside: int
    missing: int

    @classmethod
    def of(cls, domain: Domain, column: AnyArray) -> Outside:
        """Count the values of a column that a domain does not hold."""
        other, missing = ~domain.holds(column), is_missing(column)
        return cls(int((other & ~missing).sum()), int((other & missing).sum()))

    def plus(self, more: Outside) -> Outside:
        """Return the counts of both."""
        return Outside(self.outside + more.outside, self.missing + more.missing)

    def line(self, name: str, domain: Domain, n: int) -> str:
        """Return the counts of n values of a column, in words."""
        gaps = f", {self.missing} missing" if self.missing else ""
        return f"{name}: {self.outside} of {n} values outside {domain.short}{gaps}"


@dataclass(frozen=True, init=False, repr=False)
class Schema:
    """Public domains of the columns, and of the target if given.

    Everything in a schema is public: write it from a codebook or from common knowledge, never from
    the data.

    Parameters
    ----------
    columns : mapping of str to Interval or Categories
        One domain per column. For data frames columns are found by name; for arrays they are
        taken in the order of the mapping.
    target : Interval or Categories, optional
        Domain of the target: the classes of a classifier or the bounds of a regression. Records
        without a target are left out, unless ``Categories(..., unseen=...)`` has a class for them.
    guarantee : PrivacyGuarantee or str, optional
        The guarantee of what was learned from data, set by :meth:`learn`; as text in JSON. Models
        that are fitted with the schema list it among the conditions of their own guarantee.

    Examples
    --------
    >>> schema = Schema({"age": Interval(17, 90, bins=12), "job": Categories(["a", "b"])})
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    columns: Mapping[str, Domain]
    target: Domain | None
    guarantee: Any = field(compare=False, repr=False)

    learn: ClassVar[Callable[..., Schema]]
    """Return a schema whose ranges and bins are learned privately: `preprocessing.learn_schema`."""
    template: ClassVar[Callable[..., str]]
    """Return Python code of a schema to fill in, of a frame: `preprocessing.schema_template`."""

    def __init__(
        self, columns: Mapping[str, Domain], target: Domain | None = None, guarantee: Any = None
    ) -> None:
        if not isinstance(columns, Mapping):
            raise TypeError(
                "Schema columns must be a mapping of column names to Interval or Categories. "
                f"Got {type(columns).__name__} instead."
            )
        for name, domain in [*columns.items(), *([("target", target)] if target else [])]:
            if not isinstance(domain, (Interval, Categories)):
                raise TypeError(
                    f"The domain of {name!r} must be an Interval or Categories. "
                    f"Got {type(domain).__name__} instead."
                )
        if isinstance(target, Interval) and target.missing != "middle":
            raise ValueError(
                "The Interval of a target has no missing=: a model leaves out records without a "
                "target."
            )
        object.__setattr__(self, "columns", {str(k): v for k, v in columns.items()})
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "guarantee", guarantee)

    @property
    def classes(self) -> Categories:
        """Return the target's domain, which must be categories."""
        if not isinstance(self.target, Categories):
            raise ValueError("A classifier needs the target of its schema to be Categories.")
        return self.target

    @property
    def target_bounds(self) -> Interval:
        """Return the target's domain, which must be an interval."""
        if not isinstance(self.target, Interval):
            raise ValueError("A regression needs the target of its schema to be an Interval.")
        return self.target

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        """Return the code of a small schema; of a larger one its first columns and their number.

        >>> Schema(dict.fromkeys("abcdef", Interval(0, 1)))
        Schema(6 columns: 'a', 'b', 'c', ...)
        """
        target = "" if self.target is None else f", target={self.target!r}"
        if len(self) <= _SHOWN:
            return f"Schema(columns={self.columns!r}{target})"
        names = ", ".join(map(repr, [*self.columns][: _SHOWN - 1]))
        return f"Schema({len(self)} columns: {names}, ...{target})"

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.target))

    def _repr_html_(self) -> str:
        """Show one row for each column, the target last, and what was learned."""
        left_out = self.target is not None and not self.target.names_unseen
        parts = [table(CARD_COLUMNS, self.described(left_out), text=range(3))]
        if self.guarantee is not None:
            parts.append(tag("p", tag("span", "Learned: ", class_=QUIET), str(self.guarantee)))
        return card(f"Public domains of {len(self)} columns", *parts)

    def described(self, left_out: bool) -> list[tuple[str, str, str]]:
        """Return ``CARD_COLUMNS`` of every column, and of a target whose gaps are left out or not.

        >>> Schema({"age": Interval(17, 90)}, Interval(0, 60)).described(True)[1]
        ('target', '[0, 60]', 'the nearest end; if missing, the record is left out')
        """
        rows = [(name, *domain.described()) for name, domain in self.columns.items()]
        if self.target is not None:
            domain, other = self.target.described()
            if left_out:
                clipped = "the nearest end; if missing, the record is left out"
                other = clipped if self.target.is_numeric else "not counted: the record is left out"
            rows.append(("target", domain, other))
        return rows

    def check(self, X: Any, y: Any = None) -> dict[str, Outside]:
        """Count the values outside their domain: **not private, for the data owner only**.

        A fit maps such values into their domain without a message, because a message would depend
        on the records. Check before fitting: if nearly all values of a column are outside, its
        declaration is wrong. The counts are also printed.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Counted as ``"target"`` if the schema has one.

        Returns
        -------
        dict of str to (int, int)
            For every column, the number of values that are ``outside`` its domain, such as a text
            where a number is declared, and the number of those that are ``missing``.

        Examples
        --------
        >>> schema = Schema({"age": Interval(17, 90), "job": Categories(["clerk", "nurse"])})
        >>> counts = schema.check([[30, "nurse"], [200, "pilot"], [40, None]])
        Not private: these counts are exact. Do not publish them.
        age: 1 of 3 values outside [17, 90]
        job: 1 of 3 values outside 2 categories, 1 missing
        >>> counts["job"]
        Outside(outside=1, missing=1)
        """
        counts, lines = {}, [NOT_PRIVATE]
        for name, domain, column in self._columns_of(X, y):
            counts[name] = Outside.of(domain, column)
            lines.append(counts[name].line(name, domain, column.size))
        print("\n".join(lines))
        return counts

    def _columns_of(self, X: Any, y: Any) -> Iterator[tuple[str, Domain, AnyArray]]:
        """Yield every declared column with its cells: by name of a frame, or in their order."""
        named = hasattr(X, "columns")
        table: Any = X if named or hasattr(X, "dtype") else as_cells(X, 2)
        if not named and table.shape[1] != len(self):
            raise ValueError(
                f"The schema declares {len(self)} columns, but X has {table.shape[1]} features."
            )
        for j, (name, domain) in enumerate(self.columns.items()):
            if named and name not in table.columns:
                hint = did_you_mean(name, {*table.columns} - {*self.columns})
                raise ValueError(f"X lacks the column {name!r} that the schema declares.{hint}")
            column = table[name] if named else table[:, j]
            dense = column.toarray() if hasattr(column, "toarray") else column
            yield name, domain, cells_of(dense).ravel()
        if y is not None and self.target is not None:
            yield "target", self.target, cells_of(y).ravel()

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as an object for JSON; categories must be JSON values."""
        columns = {name: domain.to_dict() for name, domain in self.columns.items()}
        learned = {} if self.guarantee is None else {"guarantee": str(self.guarantee)}
        target = self.target and self.target.to_dict()
        return {"columns": columns, "target": target, **learned}

    @classmethod
    def from_dict(cls, fields: Any, where: str = "schema") -> Schema:
        """Return the schema that :meth:`to_dict` described, every field checked.

        ``where`` is its place in a larger document, for error messages.
        """
        learned = isinstance(fields, dict) and isinstance(fields.get("guarantee"), str)
        given = read_fields(fields, ("columns", "target", *["guarantee"] * learned), where)
        if not isinstance(given["columns"], dict):
            refuse(f"{where}.columns", "must be an object")
        columns = {n: read_domain(d, f"{where}.columns.{n}") for n, d in given["columns"].items()}
        target = given["target"]
        domain = None if target is None else read_domain(target, f"{where}.target")
        return cls(columns, domain, given.get("guarantee"))

    def to_json(self) -> str:
        """Return the schema as JSON text; categories must be JSON values."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Return the schema written by :meth:`to_json`."""
        try:
            return cls.from_dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"The text is not a Schema written by Schema.to_json(): {error}."
            ) from None


def declared_domains(
    names: Sequence[str] | None,
    n_features: int,
    schema: Schema | None,
    bounds: Any,
    parameter: str = "bounds",
) -> list[Domain | None]:
    """Return the declared domain of every column, None where there is none.

    ``parameter`` is what the estimator calls its bounds.
    """
    if schema is not None and bounds is not None:
        raise ValueError(f"Give either schema or {parameter}, not both: each declares the columns.")
    if bounds is not None:
        return [*intervals_from_bounds(bounds, n_features, parameter)]
    if schema is None:
        return [None] * n_features
    if names is None:
        domains = [*schema.columns.values()]
        alike = n_features < len(domains) and len({*domains}) == 1  # whichever columns these are
        if len(domains) != n_features and not alike:
            raise ValueError(
                f"The schema declares {len(domains)} columns, but X has {n_features} features, "
                "which have no names. In a pipeline, let the step before keep them: "
                "set_output(transform='pandas'). RFE, RFECV and SequentialFeatureSelector pass "
                f"some columns without their names: give {parameter} as two numbers, or use "
                "SelectFromModel with importance_getter='feature_importances_'."
            )
        return [*domains[:n_features]]
    missing = [name for name in schema.columns if name not in names]
    if missing and not {*names} <= {*schema.columns}:
        hint = _other_names(missing[0], [name for name in names if name not in schema.columns])
        raise ValueError(f"X lacks the columns {missing} that the schema declares.{hint}")
    return [schema.columns.get(name) for name in names]


def _other_names(name: str, names: Sequence[str]) -> str:
    """Return a hint at what a column may be called in X.

    >>> _other_names("age", ["num__age"])
    " X has 'num__age': give ColumnTransformer verbose_feature_names_out=False."
    """
    prefixed = [other for other in names if other.partition("__")[2] == name]
    if prefixed:
        return f" X has {prefixed[0]!r}: give ColumnTransformer verbose_feature_names_out=False."
    return did_you_mean(name, names)


def declared_width(schema: Schema | None, bounds: Any, n_features: int | None = None) -> int:
    """Return how many columns are declared, from public facts only.

    >>> declared_width(None, ([0, 0, 0], 1))
    3
    """
    if schema is not None:
        return len(schema)
    shapes = [np.shape(side) for side in bounds]
    if n_features is None and not any(shapes):
        raise ValueError(
            "Two numbers as bounds serve any number of features: give n_features, or one bound "
            "for each feature."
        )
    return max((shape[0] for shape in shapes if shape), default=n_features or 0)


def width_of_rows(schema: Schema | None, bounds: Any) -> int | None:
    """Return how many columns are declared, None if any number of them would do.

    >>> width_of_rows(None, ([0, 0, 0], 1)), width_of_rows(None, (0, 1))
    (3, None)
    """
    with suppress(ValueError, TypeError):  # wrong bounds are refused where they are used
        return declared_width(schema, bounds)
    return None


def intervals_from_bounds(bounds: Any, n_features: int, name: str = "bounds") -> list[Interval]:
    """Return one interval per feature from (low, high), each one value or one per feature.

    Examples
    --------
    >>> intervals_from_bounds(([0, 1], 9), n_features=2)
    [Interval(low=0.0, high=9.0, bins=None), Interval(low=1.0, high=9.0, bins=None)]
    """
    try:
        low, high = bounds
        sides = [_values(side) for side in (low, high)]
    except (TypeError, ValueError, OverflowError):
        sides = []
    if not sides or any(side.shape not in {(), (n_features,)} for side in sides):
        raise ValueError(
            f"{name} must be a pair (low, high), each one value or an array with one entry for "
            f"each of the {n_features} features."
        )
    if n_features == 2 and all(isinstance(side, tuple) for side in (low, high)):
        _refuse_two_pairs(sides, name)
    different = n_features if any(side.ndim for side in sides) else 1
    each = (np.broadcast_to(side, different) for side in sides)
    made = [Interval(a, b) for a, b in zip(*each, strict=True)]
    return made if len(made) == n_features else made * n_features


def _values(side: Any) -> AnyArray:
    """Return one side of the bounds: numbers, or dates as they are."""
    values = np.asarray(side)
    if values.dtype.kind == "M":
        return values
    with suppress(TypeError):
        return values.astype(np.float64)
    return values


def _refuse_two_pairs(sides: Sequence[AnyArray], name: str) -> None:
    """Refuse ((a, b), (c, d)) if it may mean a to b and c to d as well as a to c and b to d."""
    if all(side[0] < side[1] for side in sides):
        raise ValueError(
            f"{name} of two features written as two pairs can be read in two ways. Give lists, "
            "([low, low], [high, high]), or a schema with one Interval for each feature."
        )


def declared_classes(classes: Any, unseen: Any = None, ordered: bool = False) -> Categories:
    """Return declared classes, as an array of the type that they were given in.

    They are sorted unless three and more are ``ordered``. ``unseen`` is the class of records that
    have none of them; the first by default.

    Examples
    --------
    >>> declared_classes(["yes", "no"]).values
    ('no', 'yes')
    """
    given = np.asarray(classes)
    try:
        labels = np.unique(given)
    except TypeError:
        raise ValueError("classes must be values of one type, none of them missing.") from None
    if labels.size < given.size:
        raise ValueError("classes must be all different. Got a repeated value instead.")
    if labels.size == 1:
        raise ValueError(
            "classes must be at least two: with one there is nothing to predict. Nothing was spent."
        )
    return Categories(given if ordered and labels.size > 2 else labels, unseen)


@dataclass(frozen=True)
class Bins:
    """The rule that cuts intervals into bins, from public quantities only.

    ``n_bins="auto"`` gives integers and booleans one bin per value if their declared range has at
    most twice as many values as there would be bins otherwise, and at most 32. Anything else gets
    twice the integer nearest to 0.8 (n epsilon / C d)^0.4, from 4 to 16. For
    mechanisms on trees of splits, whose sensitivity grows with every doubling, it is the power of
    two nearest to 0.75 (n / (1 + b))^(1/3), from 2 to 16, b = 2(d+1)/epsilon. C is the number of
    classes, 2 if it is not known beforehand.
    """

    n_bins: Any
    n: int
    d: int
    epsilon: float
    walks_splits: bool = False
    n_classes: int = 2

    def cut(self, domain: Domain, j: int, kind: Kind) -> Domain:
        """Return the domain of column ``j`` in bins; columns that are alike share one."""
        alike = domain, kind if isinstance(self.n_bins, str) else self._given[j]
        if alike not in self._made:
            self._made[alike] = self._in_bins(domain, j, kind)
        return self._made[alike]

    @cached_property
    def _made(self) -> dict[tuple[Domain, Kind | int], Domain]:
        return {}

    def _in_bins(self, domain: Domain, j: int, kind: Kind) -> Domain:
        if domain.has_codes:
            return domain
        if not isinstance(self.n_bins, str):
            return domain.in_bins(self._given[j])
        whole = self.looks_at_types(domain) and kind in WHOLE_KINDS
        values, wanted = domain.n_integers, self._rule()
        return domain.in_bins(values if whole and values and values <= 2 * wanted else wanted)

    def looks_at_types(self, domain: Domain | None) -> bool:
        """Return whether the bins of a domain depend on the dtype of its column."""
        if not isinstance(self.n_bins, str) or domain is None or domain.has_codes:
            return False
        return (domain.n_integers or math.inf) <= _FEW_INTEGERS

    def check(self) -> None:
        """Refuse numbers of bins that are missing for a feature, or below 2."""
        if not isinstance(self.n_bins, str):
            _ = self._given

    @cached_property
    def _given(self) -> list[int]:
        one_for_all = isinstance(self.n_bins, Integral)
        given = (
            [int(self.n_bins)] * self.d if one_for_all else np.asarray(self.n_bins).ravel().tolist()
        )
        whole = all(type(k) is int and 2 <= k <= 2**16 for k in given)
        if len(given) != self.d or not whole:
            raise ValueError(
                "n_bins must be 'auto', an int >= 2, or one int >= 2 for each of the "
                f"{self.d} features; at most 65536 bins."
            )
        return list(given)

    def _rule(self) -> int:
        n = max(self.n, 1)  # without privacy there may be none
        if self.walks_splits:
            wanted = 0.75 * (n / (1 + 2 * (self.d + 1) / self.epsilon)) ** (1 / 3)
            return int(2 ** np.clip(round(math.log2(wanted)), 1, math.log2(_MOST_AUTO_BINS)))
        pairs = 0.8 * (n * self.epsilon / (self.n_classes * self.d)) ** 0.4
        return int(2 * round(np.clip(pairs, 2, _MOST_AUTO_BINS / 2)))
