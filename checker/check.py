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
import re
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

_LETTERS = {
    **{"records": "n", "records without a target": "m", "Histograms": "H", "ProductSum": "P"},
    **{"VectorSum": "V", "gradients": "G", "bounded": "B", "curvature": "C", "products": "A"},
    **dict.fromkeys(("scores in a ball", "logistic scores in a ball"), "S"),
    **dict.fromkeys(("tables", "characters", "splits"), "T"),
    **{"losses": "L", "sums": "M", "tempered": "M", "ranks": "Q", "dependence": "D"},
    **{"categories": "K", "candidates": "K"},
}
ORDERS = {
    "BayesianClassifier": "n?(H?GC?|TL?)",
    "BayesianCountRegression": "n?H?BG(CBC)?",
    "BayesianLinearRegression": "n?H(PGHHVPP|G(HV|S)?|S)|[nm]A",
    "BayesianLogisticRegression": "n?H?G[CS]?",
    **dict.fromkeys(("BayesianNaiveBayes", "BayesianNetworkClassifier"), "n?TL?"),
    **dict.fromkeys(("BetaBinomial", "DirichletMultinomial", "LifeTable"), "n?K"),
    **dict.fromkeys(("GammaExponential", "NormalMean"), "M"),
    **dict.fromkeys(("PrivateKBinsDiscretizer", "PrivateMinMaxScaler"), "n?Q"),
    **{"PrivateMoments": "n?HPHPP", "PrivateSelectKBest": "n?D", "PrivateStandardScaler": "n?Q"},
}
"""The steps of a release, in their order: regular expressions of the letters above."""


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
    if own["neighbours"] not in ("replace", "add_remove"):
        raise Wrong(f"{own['neighbours']} is no relation of neighbours")
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
    if estimator not in ORDERS:
        raise Unsupported(f"what a {estimator} releases is not known here")
    if unknown := [kind for kind in kinds if kind not in _LETTERS]:
        raise Unsupported(f"from what the sensitivity of {unknown[0]} follows is not known here")
    letters = "".join(_LETTERS[kind] for kind in kinds)
    if not re.fullmatch(ORDERS[estimator], letters):
        raise Wrong(f"a {estimator} does not release {kinds} in this order")
    if unit.added and {*letters} & {*"TGA"} and letters[0] != "n":
        raise Wrong("the number of records is secret, and no step releases it")
    for step in steps[: letters.find("G") if "G" in letters else 1]:
        if kind_of(step) == "Histograms":
            some = len(step["structure"]["sizes"]) - (step["law"]["type"] == "ClassRows")
            agree("numbers of columns", step["structure"]["columns"], some)
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


def size(released: Any, name: str) -> int | None:
    """Return the length of the first array with this name among the released values."""
    return next((found[name]["shape"][0] for found in parts(released, name) if found[name]), None)


def agree(what: str, *values: Any) -> None:
    """Refuse a plan in which something is not what it is elsewhere."""
    known = [value for value in values if value is not None]
    if any(value != known[0] for value in known):
        raise Wrong(f"{what} differ: {' and '.join(map(str, known))}")


def compare(released: Any, document: Json, fits: list[Json]) -> None:
    """Refuse a plan that is of other tables, or of other noise, than the rest of the document."""
    steps, fitted = [step for fit in fits for step in fit["steps"]], document["fitted"]
    if negative(steps):
        raise Wrong("a number of the plan is negative")
    graphs, columns = [], (fitted.get("schema_") or {}).get("columns", {}).values()
    linear = document["estimator"] == "BayesianLinearRegression"
    for step in steps:
        asked, kind = step["structure"], kind_of(step)
        if kind in ("tables", "characters", "splits"):
            graphs.append(Graph.of(asked))
        if kind == "splits":
            agree("draws", asked["draws"], size(released, "weights"))
            for found in parts(released, "draws", "weights"):
                if sum(found["weights"]["data"]) > asked["turns"] * len(fits) * float(UP):
                    raise Wrong("draws are of more records than the plan says")
        elif kind == "losses" and graphs:
            agree("numbers of classes", asked["classes"], graphs[-1].sizes[-1])
        elif kind == "gradients":
            agree("signs", asked["signed"], not (linear or asked.get("ordered", False)))
        elif kind == "categories":
            agree("numbers of categories", asked["categories"], size(released, "concentration"))
        elif kind == "candidates":
            prior = document["parameters"]["prior"]
            own = prior["tuple"] if isinstance(prior, dict) else [prior] * len(asked["prior"])
            agree("priors", asked["prior"], own)
        elif kind == "tempered":
            agree("draws", asked["draws"], size(released, "draws"))
            if asked["families"][0]["type"] == "NormalFamily":
                agree("bounds", asked["bounds"], [[c["low"], c["high"]] for c in columns])
    graphs += [Graph.of(one) for one in parts(released, "sizes", "parents")]
    agree("tables of the plan and those that were released", *graphs)
    for one in parts(released, "laws", "size_laws"):
        laws = [s["law"] for s in steps if kind_of(s) in ("tables", "characters")]
        sizes = [s["law"] for s in steps if kind_of(s) == "records"]
        agree("the noise of the plan and of the released values", one["laws"], laws)
        agree("the noise of the numbers of records", one["size_laws"], sizes)


def declared(parameters: Json, printed: Json, fits: list[Json]) -> None:
    """Compare the guarantee with the parameters that the model was made with."""
    asked = parameters.get("privacy_unit", "record")
    known = asked["privacy_unit"] if isinstance(asked, dict) else {"name": asked, "max_records": 1}
    for fit in fits:
        agree(
            "units of privacy",
            *({name: unit[name] for name in known} for unit in (known, fit["unit"])),
        )
        if isinstance(asked, str):
            agree("neighbours", fit["unit"]["neighbours"], "replace")
    least = parameters.get("epsilon", 0)
    least = fraction(least["fraction"] if isinstance(least, dict) else least)
    if fraction(printed["epsilon"]) * UP < least:
        raise Unsupported("the parameters have a larger epsilon: a step may be missing")


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
    compare(fitted.get("posterior_"), document, fits)
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
    declared(document["parameters"], printed, fits)
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
