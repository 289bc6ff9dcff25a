"""Odd values, shapes and parameters: with declared domains no value decides whether a fit fails.

Values go into the records of every estimator and mechanism (but for BetaBinomial, which refuses
whatever is not 0 or 1, and says so in the conditions of its guarantee). Parameters that are refused
must be refused clearly, before anything is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from benchmarks.audit._cases import Row, circumstance
from dpbayes_sklearn import BetaBinomial
from dpbayes_sklearn.audit.catalogue import Case, every_case
from dpbayes_sklearn.audit.fuzzing import (
    BAD_PARAMETERS,
    FRAMES,
    Outcome,
    bad_shapes,
    fit_with,
    odd_records,
)

VALUES = 24_000
IN_EACH = 12


def total_cases() -> list[Case]:
    return [case for case in every_case(n=20) if not isinstance(case.estimator, BetaBinomial)]


def one_of_each() -> list[Case]:
    kinds = {type(case.estimator): case for case in every_case(n=20)}
    return [*kinds.values()]


def clear(outcome: Outcome, name: str) -> bool:
    """Tell whether a refusal says what was wrong, and came before any charge."""
    expected = isinstance(outcome.error, (TypeError, ValueError))
    message = str(outcome.error)
    says = name.removesuffix("_X").removesuffix("_y") in message or "must" in message
    return expected and says and not outcome.spent


def run(scale: float) -> Iterator[Row]:
    yield odd_values(scale)
    yield shapes()
    yield parameters(scale)


def odd_values(scale: float) -> Row:
    """Try odd values in every container and in every state that a caller may leave numpy in."""
    rng, tried, failed, warned = np.random.default_rng(0), 0, 0, 0
    each = [(case, container) for container in (None, *FRAMES) for case in total_cases()]
    for number, (case, container) in enumerate(cycle(each)):
        with circumstance(number):
            outcome = fit_with(case.estimator, *odd_records(case, IN_EACH, rng, container))
        tried += IN_EACH
        failed += outcome.error is not None
        warned += len(outcome.warned)
        if tried >= VALUES * scale:
            break
    figure = f"{failed} exceptions, {warned} warnings"
    passed = not failed and not warned
    return Row("values", f"odd values in declared domains: {tried:,}", figure, "0, 0", passed)


def shapes() -> Row:
    outcomes = [
        fit_with(case.estimator, X, y) for case in one_of_each() for X, y in bad_shapes(case)
    ]
    wrong = sum(not isinstance(o.error, (TypeError, ValueError)) or o.spent > 0 for o in outcomes)
    what = f"records of impossible shapes: {len(outcomes)}"
    return Row("values", what, f"{wrong} accepted or charged", "0", wrong == 0)


def parameters(scale: float) -> Row:
    refused = unclear = 0
    for case in one_of_each():
        for name in sorted(case.estimator.get_params(deep=False)):
            for value in BAD_PARAMETERS[:: 1 if scale >= 0.5 else 4]:
                outcome = fit_with(case.estimator, case.X, case.y, **{name: value})
                refused += outcome.error is not None
                unclear += outcome.error is not None and not clear(outcome, name)
    what = f"parameters refused: {refused:,}"
    return Row("values", what, f"{unclear} unclear or charged", "0", unclear == 0)
