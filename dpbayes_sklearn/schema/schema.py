"""The public description of a table, by column name, its card and its JSON form.

Every field of the JSON is checked when it is read back. An interval is ``{"low", "high", "bins",
"dates"}``, with ``"edges"`` if it has any and ``"missing"`` if missing values do not go to the
middle, categories are ``{"values", "unseen", "dtype"}``, and a schema is ``{"columns": {name:
domain}, "target": domain or null}``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy.typing as npt

from dpbayes_sklearn._presenting import QUIET, Html, card, table, tag
from dpbayes_sklearn.schema.domains import MOST_BINS, Categories, Domain, Interval, is_json_label
from dpbayes_sklearn.schema.values import as_cells, cells_of

D = TypeVar("D", Interval, Categories)

# More values of one hash would make a table of them slow, and are refused.
_MOST_OF_ONE_HASH = 1000


class NotTheForm(ValueError):
    """Raised where JSON is not what was expected: the place and the rule."""


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


@dataclass(frozen=True, init=False)
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
        Domain of the target: the classes of a classifier or the bounds of a regression.
    guarantee : PrivacyGuarantee or str, optional
        The guarantee of what was learned from data, set by :meth:`learn`; as text in JSON. Models
        that are fitted with the schema list it among the conditions of their own guarantee.
    missing_target : bool, default=False
        Whether records may lack a target. Models then leave such records out, and release with
        noise how many count. By default a missing target counts as the middle of its bounds or as
        the first class, which biases a model if there are many.

    Examples
    --------
    >>> schema = Schema({"age": Interval(17, 90, bins=12), "job": Categories(["a", "b"])})
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    columns: Mapping[str, Domain]
    target: Domain | None
    guarantee: Any = field(compare=False, repr=False)
    missing_target: bool = False

    learn: ClassVar[Callable[..., Schema]]
    """Return a schema whose ranges and bins are learned privately: `preprocessing.learn_schema`."""

    def __init__(
        self,
        columns: Mapping[str, Domain],
        target: Domain | None = None,
        guarantee: Any = None,
        missing_target: bool = False,
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
                "The Interval of a target has no missing=: Schema(..., missing_target=True) leaves "
                "out records without a target."
            )
        if not isinstance(missing_target, bool) or (missing_target and target is None):
            raise ValueError("missing_target must be True or False, and True needs a target.")
        if missing_target and target is not None and target.names_unseen:
            raise ValueError(
                "Targets that are missing are left out (missing_target) or count as a class "
                "(unseen): declare one of the two."
            )
        object.__setattr__(self, "columns", {str(k): v for k, v in columns.items()})
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "guarantee", guarantee)
        object.__setattr__(self, "missing_target", missing_target)

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

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.target))

    def _repr_html_(self) -> str:
        return schema_card(self.columns.items(), self.target, self.guarantee)

    def check(self, X: Any, y: Any = None) -> dict[str, int]:
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
        dict of str to int
            For every column, the number of values outside its domain, including missing values.

        Examples
        --------
        >>> schema = Schema({"age": Interval(17, 90), "job": Categories(["clerk", "nurse"])})
        >>> counts = schema.check([[30, "nurse"], [200, "pilot"], [40, None]])
        Not private: these counts are exact. Do not publish them.
        age: 1 of 3 values outside [17, 90]
        job: 2 of 3 values outside 2 categories
        """
        counts, lines = {}, ["Not private: these counts are exact. Do not publish them."]
        for name, domain, column in self._columns_of(X, y):
            inside = domain.holds(column)
            counts[name] = int(inside.size - inside.sum())
            lines.append(f"{name}: {counts[name]} of {inside.size} values outside {domain.short}")
        if counts.get("target") and not self.missing_target:
            lines.append(
                "Declare that targets may be missing, Schema(..., missing_target=True): such "
                "records are then left out. Otherwise they count, and bias a model."
            )
        print("\n".join(lines))
        return counts

    def _columns_of(self, X: Any, y: Any) -> Iterator[tuple[str, Domain, npt.NDArray[Any]]]:
        """Yield every declared column with its cells: by name of a frame, or in their order."""
        named = hasattr(X, "columns")
        table: Any = X if named or hasattr(X, "dtype") else as_cells(X, 2)
        if not named and table.shape[1] != len(self):
            raise ValueError(
                f"The schema declares {len(self)} columns, but X has {table.shape[1]} features."
            )
        for j, (name, domain) in enumerate(self.columns.items()):
            if named and name not in table.columns:
                raise ValueError(f"X lacks the column {name!r} that the schema declares.")
            column = table[name] if named else table[:, j]
            dense = column.toarray() if hasattr(column, "toarray") else column
            yield name, domain, cells_of(dense).ravel()
        if y is not None and self.target is not None:
            yield "target", self.target, cells_of(y).ravel()

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as an object for JSON; categories must be JSON values."""
        columns = {name: domain.to_dict() for name, domain in self.columns.items()}
        learned = {} if self.guarantee is None else {"guarantee": str(self.guarantee)}
        missing = {"missing_target": True} if self.missing_target else {}
        target = self.target and self.target.to_dict()
        return {"columns": columns, "target": target, **learned, **missing}

    @classmethod
    def from_dict(cls, fields: Any, where: str = "schema") -> Schema:
        """Return the schema that :meth:`to_dict` described, every field checked.

        ``where`` is its place in a larger document, for error messages.
        """
        learned = isinstance(fields, dict) and isinstance(fields.get("guarantee"), str)
        missing = isinstance(fields, dict) and fields.get("missing_target") is True
        more = [*["guarantee"] * learned, *["missing_target"] * missing]
        given = read_fields(fields, ("columns", "target", *more), where)
        if not isinstance(given["columns"], dict):
            refuse(f"{where}.columns", "must be an object")
        columns = {n: read_domain(d, f"{where}.columns.{n}") for n, d in given["columns"].items()}
        target = given["target"]
        domain = None if target is None else read_domain(target, f"{where}.target")
        return cls(columns, domain, given.get("guarantee"), missing)

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


_CARD_COLUMNS = ("column", "domain", "other values count as")  # The columns of the card.


def schema_card(
    columns: Iterable[tuple[str, Domain]], target: Domain | None, guarantee: object
) -> Html:
    """Return one row for each column, the target last, and the guarantee of what was learned."""
    rows = [(name, *domain.described()) for name, domain in columns]
    title = f"Public domains of {len(rows)} columns"
    if target is not None:
        rows.append(("target", *target.described()))
    parts = [table(_CARD_COLUMNS, rows, text=range(len(_CARD_COLUMNS)))]
    if guarantee is not None:
        parts.append(tag("p", tag("span", "Learned: ", class_=QUIET), str(guarantee)))
    return card(title, *parts)
