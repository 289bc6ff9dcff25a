"""Whether what is drawn is what a plan lists: its steps, in order, from the laws that they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.audit.tools.recording import Recording, planted
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.release import Plan, Step, StepPlan, boundary, composed


@dataclass
class Taken:
    """The steps that a plan took, each with its law and what was drawn: places in a recording."""

    plan: Plan[Any, Any]
    steps: list[tuple[Step[Any, Any], Any, slice]] = field(default_factory=list)
    drawn: slice = field(default_factory=lambda: slice(0))


@contextmanager
def watched(log: Recording) -> Iterator[list[Taken]]:
    """Note the steps of all plans that release while a block runs."""
    found: list[Taken] = []
    open_ones: list[Taken] = []
    real = Step.release

    def of_plan(release: Any, plan: Any, *private: Any) -> Any:
        start, own = len(log.steps), Taken(plan)
        open_ones.append(own)
        try:
            return release(plan, *private)
        finally:
            found.append(open_ones.pop())
            own.drawn = slice(start, len(log.steps))

    def of_step(step: Any, statistics: Any, known: Any, noise: Any) -> Any:
        start, law = len(log.steps), step.law_given(known)
        told = real(step, statistics, known, noise)
        open_ones[-1].steps.append((step, law, slice(start, len(log.steps))))
        return told

    with boundary(of_plan), planted((Step, "release", of_step)):
        yield found


def unlisted(found: Sequence[Taken], log: Recording) -> Iterator[str]:
    """Say what was drawn or charged otherwise than a plan lists it."""
    for taken in found:
        plan, name = taken.plan, f"{type(taken.plan).__name__}, {taken.plan.mechanism}"
        if not isinstance(plan, StepPlan):
            continue
        if [id(step) for step, *_ in taken.steps] != [id(step) for step in plan.steps]:
            yield f"{name}: the steps that are taken are not those of the list"
        within = [place for *_, own in taken.steps for place in range(own.start, own.stop)]
        if within != [*range(taken.drawn.start, taken.drawn.stop)]:
            yield f"{name}: something is drawn in no step"
        for step, law, own in taken.steps:
            laws = [getattr(drawn, "law", None) for drawn in log.steps[own]]
            if isinstance(law, NoiseLaw) and laws != [law]:
                yield f"{name}, {step.what}: the law is not the one that is shown"
        spent = [step.cost for step in plan.steps]
        if spent and composed(spent)[:4] != plan.cost[:4]:
            yield f"{name}: the steps do not cost what is charged together"
