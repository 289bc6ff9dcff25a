"""A schema whose ranges and bins are learned privately from a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbayes_sklearn.data.dask import PartitionedTable, is_partitioned
from dpbayes_sklearn.data.table import Table, is_frame
from dpbayes_sklearn.preprocessing._frame_domains import NUMBERS, TEXTS, FrameDomains
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyGuarantee
from dpbayes_sklearn.schema import Domain, Schema

__all__ = ["learn_schema"]


def learn_schema(
    frame: Any,
    epsilon: float = 1.0,
    *,
    columns: Mapping[str, Domain] | None = None,
    target: Domain | None = None,
    bins: int | None = 8,
    delta: float = 0.0,
    privacy_unit: str = "record",
    max_records_per_person: int | None = None,
    neighbours: str = "replace",
    groups: Any = None,
    accountant: BudgetAccountant | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = True,
) -> Schema:
    """Return a schema of a data frame, with ranges and bins of its numbers learned privately.

    Parameters
    ----------
    frame : data frame or dask data frame
        Records, one per person unless ``privacy_unit="person"``; only columns of the schema.
    epsilon : float, default=1.0
        Privacy budget, shared equally by the columns that are learned.
    columns : mapping of str to Interval or Categories, optional
        Columns that are declared. All others must be numbers, booleans or dates by their type, or,
        with a ``delta``, texts.
    target : Interval or Categories, optional
        Public domain of a target that is not a column of ``frame``.
    bins : int or None, default=8
        Number of bins with about as many records each, for classifiers; the range of such a column
        is as wide as its outer bins would be if they were as wide as their neighbours. None learns
        the range from the 1 % to the 99 % quantile, for a regression.
    delta : float in [0, 1), default=0.0
        Finds the categories of columns of text if it is above zero: texts that many records share.
        All others, and whatever is no text, count as "other". With k columns to learn, t of them
        texts, one is found if about ``2k/epsilon * log(t/delta)`` records share it (of a person's
        m records together: m times as many). Delta should be far below one over the number of
        records.
    privacy_unit : {"record", "person"}, default="record"
        Who is protected: one record, or all records of one person.
    max_records_per_person : int, optional
        For ``privacy_unit="person"``: how many records of a person are protected together. With
        ``groups`` no more of them count.
    neighbours : {"replace", "add_remove"}, default="replace"
        "replace": neighbours have as many records, so their number is public. "add_remove": a
        record (or a person) is there or not, so the number of records is secret.
    groups : array-like of shape (n_samples,), optional
        For ``privacy_unit="person"``: whose record it is.
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
    if not is_frame(frame):
        raise TypeError("Schema.learn takes a data frame, whose columns have names and types.")
    table = PartitionedTable(frame) if is_partitioned(frame) else Table(frame)
    names = table.names or []
    if unknown := [name for name in declared if name not in names]:
        raise ValueError(f"The frame lacks the columns {unknown} that are declared.")
    kinds = {name: table.kind(j) for j, name in enumerate(names) if name not in declared}
    texts = [name for name, kind in kinds.items() if kind not in NUMBERS]
    if refused := [name for name in texts if not delta or kinds[name] not in TEXTS]:
        raise ValueError(
            f"The columns {refused} hold no numbers or dates by their type: declare them, as in "
            f"columns={{{refused[0]!r}: Categories([...])}}, or leave them out. Categories of "
            "texts are found with a delta, as in delta=1e-6. Nothing was spent."
        )
    found: dict[str, Domain] = {}
    guarantee: PrivacyGuarantee | None = None
    if kinds:
        learner = FrameDomains(
            epsilon,
            delta=delta if texts else 0.0,
            bins=bins,
            privacy_unit=privacy_unit,
            max_records_per_person=max_records_per_person,
            neighbours=neighbours,
            accountant=accountant,
            random_state=random_state,
        ).fit(frame[[*kinds]], groups=groups)
        found, guarantee = learner.domains_, learner.guarantee_
    schema = Schema({name: declared.get(name) or found[name] for name in names}, target, guarantee)
    if verbose:
        for name, domain in schema.columns.items():
            cut = f"{domain.n_values} bins between " if getattr(domain, "edges", None) else ""
            source = "learned" if name in found else "declared"
            print(f"{name}: {cut}{domain.short} ({source})")
        print(guarantee or "Nothing was learned, and nothing was spent.")
    return schema


Schema.learn = staticmethod(learn_schema)
