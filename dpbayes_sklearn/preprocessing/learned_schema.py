"""A schema whose ranges and bins are learned privately from a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbayes_sklearn.data.table import Table, is_frame
from dpbayes_sklearn.preprocessing.k_bins import PrivateKBinsDiscretizer
from dpbayes_sklearn.preprocessing.min_max import PrivateMinMaxScaler
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyGuarantee
from dpbayes_sklearn.schema import Domain, Interval, Schema
from dpbayes_sklearn.schema.kinds import Kind

__all__ = ["learn_schema"]

_LEARNED: frozenset[Kind] = frozenset({"integers", "numbers", "dates", "booleans"})


def learn_schema(
    frame: Any,
    epsilon: float = 1.0,
    *,
    columns: Mapping[str, Domain] | None = None,
    target: Domain | None = None,
    bins: int | None = 8,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = True,
) -> Schema:
    """Return a schema of a data frame, with ranges and bins of its numbers learned privately.

    Parameters
    ----------
    frame : data frame
        Records, one per person; only columns of the schema.
    epsilon : float, default=1.0
        Privacy budget, shared equally by the columns that are learned.
    columns : mapping of str to Interval or Categories, optional
        Columns that are declared. All others must be numbers, booleans or dates by their type;
        columns of text must be declared.
    target : Interval or Categories, optional
        Public domain of a target that is not a column of ``frame``.
    bins : int or None, default=8
        Number of bins with about as many records each, for classifiers; the range of such a column
        is as wide as its outer bins would be if they were as wide as their neighbours. None learns
        the range from the 1 % to the 99 % quantile, for a regression.
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
    Differentially private with epsilon = 0.5 under the quantiles mechanism, ...
    >>> schema.columns["wage"].n_values, schema.guarantee.epsilon
    (4, 0.5)
    """
    declared = {str(name): domain for name, domain in (columns or {}).items()}
    if not is_frame(frame):
        raise TypeError("Schema.learn takes a data frame, whose columns have names and types.")
    table = Table(frame)
    names = table.names or []
    if unknown := [name for name in declared if name not in names]:
        raise ValueError(f"The frame lacks the columns {unknown} that are declared.")
    kinds = {name: table.kind(j) for j, name in enumerate(names)}
    learned = [name for name in names if name not in declared]
    if text := [name for name in learned if kinds[name] not in _LEARNED]:
        raise ValueError(
            f"The columns {text} hold no numbers or dates by their type: declare them, as in "
            f"columns={{{text[0]!r}: Categories([...])}}, or leave them out. Nothing was spent."
        )
    found: dict[str, Domain] = {}
    guarantee: PrivacyGuarantee | None = None
    if learned:
        options = {"epsilon": epsilon, "accountant": accountant, "random_state": random_state}
        ends, guarantee = _learned(frame[learned], bins, options)
        for name, (low, high, edges) in zip(learned, ends, strict=True):
            found[name] = _interval(low, high, edges, kinds[name] == "dates")
    schema = Schema({name: declared.get(name) or found[name] for name in names}, target, guarantee)
    if verbose:
        for name, domain in schema.columns.items():
            cut = f"{domain.n_values} bins between " if getattr(domain, "edges", None) else ""
            source = "learned" if name in found else "declared"
            print(f"{name}: {cut}{domain.short} ({source})")
        print(guarantee or "Nothing was learned, and nothing was spent.")
    return schema


Ends = tuple[float, float, tuple[float, ...] | None]


def _learned(
    numbers: Any, bins: int | None, options: dict[str, Any]
) -> tuple[list[Ends], PrivacyGuarantee]:
    """Return the range of every column, and its edges if there are bins."""
    if bins is None:
        scaler = PrivateMinMaxScaler(**options).fit(numbers)
        ranges = zip(scaler.data_min_.tolist(), scaler.data_max_.tolist(), strict=True)
        return [(low, high, None) for low, high in ranges], scaler.guarantee_
    cut = PrivateKBinsDiscretizer(bins, **options).fit(numbers)
    each = [edges.tolist() for edges in cut.bin_edges_]
    return [(*_outer(edges), tuple(edges)) for edges in each], cut.guarantee_


def _outer(edges: list[float]) -> tuple[float, float]:
    """Return ends of the outer bins, as wide as their neighbours."""
    if len(edges) == 1:
        return edges[0], edges[0]
    return 2 * edges[0] - edges[1], 2 * edges[-1] - edges[-2]


def _interval(low: float, high: float, edges: tuple[float, ...] | None, dates: bool) -> Interval:
    """Return an interval that is never empty."""
    most = 2.0**1000
    low, high = max(low, -most), min(high, most)
    wide = max(1.0, abs(low)) * 2.0**-20
    if high - low < wide:  # all records may have one value
        low, high = low - wide, low + wide
    return Interval(low, high, dates=dates, edges=edges)


Schema.learn = staticmethod(learn_schema)
