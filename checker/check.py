"""Checks the guarantee in a released model, without the library that made it.

A document lists every step of its release: what was asked (its *structure*), the law of the noise,
and what the step is said to cost. From the structure and the unit of privacy this program derives
by how much neighbours differ, from the law what that costs, and from all steps epsilon, delta and
rho. It answers *holds*, *does not hold* or *cannot tell*. It reads the document alone: that the
program which wrote it did what the document says is for an audit to show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from checker.counts import COUNTS, Graph
from checker.laws import (
    UP,
    Json,
    Loss,
    Unit,
    Unsupported,
    Wrong,
    delta_of_zcdp,
    exponential,
    fraction,
)
from checker.regression import REGRESSION

HOLDS, FALSE, UNKNOWN = "holds", "does not hold", "cannot tell"
VERSION = 1  # Of the plan in a document.
STEPS = COUNTS | REGRESSION
_SIGNED = {"bounds", "centre", "column", "families"}  # Fields of numbers of either sign.

_ANSWERS = {
    "BayesianClassifier": {"tables", "gradients"},
    "BayesianCountRegression": {"gradients"},
    "BayesianLinearRegression": {"products", "gradients", "scores in a ball"},
    "BayesianLogisticRegression": {"gradients"},
    "BayesianNaiveBayes": {"tables", "characters", "splits"},
    "BayesianNetworkClassifier": {"tables", "characters", "splits"},
    "BetaBinomial": {"categories", "candidates"},
    "DirichletMultinomial": {"categories", "candidates"},
    "GammaExponential": {"sums", "tempered"},
    "LifeTable": {"categories"},
    "NormalMean": {"sums", "tempered"},
    "PrivateKBinsDiscretizer": {"ranks"},
    "PrivateMinMaxScaler": {"ranks"},
    "PrivateMoments": {"ProductSum"},
    "PrivateSelectKBest": {"dependence"},
    "PrivateStandardScaler": {"ranks"},
}
"""The steps of which a release of an estimator has one."""


class Verdict(NamedTuple):
    """An answer, with what was derived and why."""

    answer: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"The guarantee {self.answer}.", *(f"  {line}" for line in self.lines)])


def kind_of(step: Json) -> Any:
    """Return what kind of question a step asks."""
    asked = step["structure"]
    return asked.get("kind", asked.get("type")) if isinstance(asked, dict) else asked


def loss_of(step: Json, unit: Unit) -> Loss:
    """Return the loss of a step, derived from what was asked, the law and the unit."""
    kind, what = kind_of(step), step["what"]
    if kind not in STEPS:
        raise Unsupported(f"{what}: from what its sensitivity follows is not in the document")
    loss, epsilon = STEPS[kind](step["structure"], step["law"], unit), fraction(step["epsilon"])
    if step["rho"] is None and loss.pure is not None and loss.pure > epsilon:
        raise Wrong(f"{what}: epsilon is {float(loss.pure):.12g}, not {float(epsilon):.12g}")
    if step["rho"] is not None and loss.rho is not None and loss.rho > fraction(step["rho"]) * UP:
        raise Wrong(f"{what}: rho is {float(loss.rho):.12g}, not {step['rho']}")
    return loss


def together(losses: list[Loss], epsilon: Fraction, delta: Fraction) -> bool:
    """Tell whether steps that are taken one after the other are (epsilon, delta)-private."""
    pure, rhos = [loss.pure for loss in losses], [loss.zcdp for loss in losses]
    if None not in pure and sum(filter(None, pure)) <= epsilon:
        return True
    if None not in rhos and delta_of_zcdp(Fraction(sum(filter(None, rhos))), epsilon) <= delta:
        return True
    # one step has a delta: pure ones before cost their epsilon, those after are a randomised
    # response at worst
    for place, curve in enumerate(loss.curve for loss in losses):
        before, after = pure[:place], pure[place + 1 :]
        if curve is not None and None not in before + after:
            rest = Fraction(sum(filter(None, after)))
            left, likely = epsilon - sum(filter(None, before)), 1 / (1 + math.exp(-rest))
            if likely * curve(left - rest) + (1 - likely) * curve(left + rest) <= delta:
                return True
    return False


def check_fit(fit: Json, printed: Json, estimator: str, weight: int | None) -> list[str]:
    """Check one fit against a guarantee; return what was derived."""
    own, steps, text = fit["unit"], fit["steps"], printed["neighbours"]
    unit = Unit(own["name"], own["max_records"], own["neighbours"] == "add_remove")
    said = "adding or removing" in text, "feature value" in text, "person" in text
    means = unit.added, unit.name == "feature", unit.name == "person"
    if (unit.name, unit.k, *means) != (printed["unit"], printed["max_records"], *said):
        raise Wrong(f"the steps protect a {unit.name}, the guarantee is about {text}")
    epsilon, delta, times = fraction(printed["epsilon"]), fraction(printed["delta"]), 1
    if fit["copies"] != weight:
        raise Wrong(f"records count {fit['copies']} times in the plan, {weight} in the parameters")
    if weight is not None:  # copies come or go: a replaced record is two such changes
        times = 1 if unit.added else 2
        delta /= 1 + exponential(epsilon / 2) if times == 2 else 1
        unit = Unit("person", unit.k * weight, True)
    price = times
    if (runs := fit.get("runs")) is not None:  # the best of a random number of runs
        price = times * {"geometric": 3, "logarithmic": 2}[runs["name"]]
        if delta:
            raise Unsupported("a search with a delta")
    epsilon, kinds = epsilon / price, [kind_of(step) for step in steps]
    if estimator not in _ANSWERS:
        raise Unsupported(f"what a {estimator} releases is not known here")
    if not _ANSWERS[estimator] & {*kinds}:
        raise Wrong(f"no step of the plan is what a {estimator} releases")
    counts = {"tables", "characters", "splits", "gradients", "products"}
    if unit.added and counts & {*kinds} and kinds[0] != "records":
        raise Wrong("the number of records is secret, and no step releases it")
    linear, first = estimator == "BayesianLinearRegression", kinds[0] if unit.added else None
    if linear and "gradients" in kinds and kinds[first is not None] != "Histograms":
        raise Wrong("the windows of a perturbed mode were not released before it")
    if linear and "products" in kinds and not unit.added and len(kinds) == 1:
        raise Wrong("the number of records with a target was not released")
    losses = [loss_of(step, unit) for step in steps]
    if not together(losses, epsilon, delta):
        raise Wrong(f"all steps cost more than epsilon = {float(epsilon):.12g} and delta")
    known = [loss.zcdp for loss in losses]
    if printed["rho"] is not None and None in known:
        raise Unsupported("a rho is printed, and that of a step is not known")
    rho = sum(filter(None, known), Fraction(0)) * times**2
    if printed["rho"] is not None and rho > fraction(printed["rho"]) * UP:
        raise Wrong(f"rho is {float(rho):.12g}, and {printed['rho']} is printed")
    spent = sum((fraction(step["epsilon"]) for step in steps), Fraction(0))
    if not spent <= epsilon <= spent * UP:
        raise Unsupported(f"steps spend {float(spent * price):.12g}: one may be missing")
    return [f"{step['what']}: {shown(loss)}" for step, loss in zip(steps, losses, strict=True)]


def shown(loss: Loss) -> str:
    """Return a loss as text."""
    known = {"epsilon": loss.pure, "rho": loss.rho}
    return ", ".join(f"{name} = {float(x):.6g}" for name, x in known.items() if x is not None)


def parts(json: Any, *names: str) -> Iterator[Json]:
    """Yield all objects with these fields in a document."""
    if isinstance(json, dict) and {*names} <= {*json}:
        yield json
    for each in json.values() if isinstance(json, dict) else json if isinstance(json, list) else ():
        yield from parts(each, *names)


def negative(json: Any) -> bool:
    """Tell whether a number is negative that cannot be: of bounds and places some are."""
    if isinstance(json, dict):
        return any(negative(json[name]) for name in {*json} - _SIGNED)
    if isinstance(json, list):
        return any(map(negative, json))
    return isinstance(json, (int, float)) and json < 0


def finite(name: str) -> None:
    """Refuse what is no number."""
    raise ValueError(f"{name} is no number of JSON")


def compare(released: Any, fits: list[Json]) -> None:
    """Refuse a plan that is of other tables, or of other noise, than the released values."""
    steps = [step for fit in fits for step in fit["steps"]]
    if negative(steps):
        raise Wrong("a number of the plan is negative")
    turns = [step["structure"]["turns"] for step in steps if kind_of(step) == "splits"]
    for found in parts(released, "draws", "weights"):
        if turns and sum(found["weights"]["data"]) > sum(turns) * float(UP):
            raise Wrong("draws are of more records than the plan says")
    graphs = [
        Graph.of(s["structure"]) for s in steps if kind_of(s) in ("tables", "characters", "splits")
    ]
    if any(
        Graph.of(found) != one for found in parts(released, "sizes", "parents") for one in graphs
    ):
        raise Wrong("the tables of the plan are not those that were released")
    for found in parts(released, "laws", "size_laws"):
        laws = [s["law"] for s in steps if kind_of(s) in ("tables", "characters")]
        sizes = [s["law"] for s in steps if kind_of(s) == "records"]
        if (found["laws"], found["size_laws"]) != (laws, sizes):
            raise Wrong("the noise of the plan is not that of the released values")


def checked(document: Json) -> list[str]:
    """Return what was derived, or raise what is wrong."""
    printed, fitted, plan = document["guarantee"], document["fitted"], document.get("plan")
    if not printed["is_private"] or printed["epsilon"] == "inf":
        raise Unsupported("no privacy is promised: epsilon is infinite")
    if plan is None or plan["version"] != VERSION:
        raise Unsupported(f"the document has no plan of version {VERSION}")
    fits, batches = plan["fits"], fitted.get("_batches") or [fitted["guarantee_"]]
    if len(fits) != len(batches):
        raise Wrong(f"there are guarantees of {len(batches)} batches, and plans of {len(fits)}")
    compare(fitted.get("posterior_"), fits)
    lines = []
    for fit, own in zip(fits, batches, strict=True):
        weight = document["parameters"].get("max_weight")
        lines += check_fit(fit, own, document["estimator"], weight)
        if any(own[name] != printed[name] for name in ("unit", "max_records", "neighbours")):
            raise Wrong("what is printed is about other neighbours than the guarantee of a batch")
        for name in ("epsilon", "delta", "rho"):
            most = math.inf if own[name] is None else own[name]
            if printed[name] is not None and printed[name] < most:
                raise Wrong(f"the {name} that is printed is below that of a batch")
    if len(batches) > 1 and not any("batches" in one for one in printed["conditions"]):
        raise Wrong("no condition says that nobody is in two batches")
    return [*lines, *(f"provided that {condition}" for condition in printed["conditions"])]


def check(text: str) -> Verdict:
    """Return whether the guarantee of a released model holds."""
    try:
        return Verdict(HOLDS, tuple(checked(json.loads(text, parse_constant=finite))))
    except Wrong as error:
        return Verdict(FALSE, (str(error),))
    except Unsupported as error:
        return Verdict(UNKNOWN, (str(error),))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return Verdict(
            UNKNOWN, (f"the document has another form than this program reads: {error!r}",)
        )
