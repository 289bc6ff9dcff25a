"""The result of a private evaluation: scores by name, with intervals and one guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbayes_sklearn._html import QUIET, card, table, tag
from dpbayes_sklearn.metrics.intervals import Score
from dpbayes_sklearn.privacy import PrivacyGuarantee

__all__ = ["CrossValidation", "Evaluation"]


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, Any]):
    """Metrics of a model on private records; may be published.

    Attributes
    ----------
    scores : dict
        A :class:`Score` of every metric by its name; a :class:`ConfusionMatrix` or a
        :class:`CalibrationCurve` of those that are not one number. ``evaluation["accuracy"]`` is
        the same as ``evaluation.scores["accuracy"]``.
    guarantee : PrivacyGuarantee
        Of all of them together.
    level : float
        Nominal coverage of the intervals.
    n_records : float
        How many records were evaluated; a noisy number if it is secret.
    """

    heads: ClassVar[tuple[str, ...]] = (
        "metric",
        "estimate",
        "interval",
        "error by noise",
        "error by sampling",
    )

    scores: dict[str, Any]
    guarantee: PrivacyGuarantee
    level: float
    n_records: float

    def __getitem__(self, name: str) -> Any:
        return self.scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Metrics that are one number, as rows of text under ``heads``."""
        return [
            (
                name,
                f"{score.value:.4g}",
                f"{score.low:.4g} to {score.high:.4g}",
                f"{score.noise_std:.2g}",
                f"{score.sampling_std:.2g}",
            )
            for name, score in self.scores.items()
            if isinstance(score, Score)
        ]

    @property
    def sentence(self) -> str:
        """Return on what, and how privately, the metrics were computed."""
        about = "about " * self.guarantee.privacy_unit.size_is_secret
        return (
            f"Metrics on {about}{max(self.n_records, 0):,.0f} private records, with "
            f"{100 * self.level:g} % intervals that include sampling error and privacy noise. "
            f"{self.guarantee}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for machines."""
        scores = {name: _plain(score) for name, score in self.scores.items()}
        return {
            "scores": scores,
            "level": self.level,
            "n_records": self.n_records,
            "guarantee": self.guarantee.to_dict(),
        }

    def __repr__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.heads))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*text, self.sentence])

    def _repr_html_(self) -> str:
        parts = [tag("p", self.sentence, class_=QUIET)]
        if self.rows:
            parts.insert(0, table(self.heads, self.rows, text=[0]))
        return card("Private evaluation", *parts, accent=self.guarantee.accent)


@dataclass(frozen=True, repr=False)
class CrossValidation(Evaluation):
    """Metrics by cross-validation, and the models of its folds.

    Attributes
    ----------
    models : tuple
        One fitted model for each fold, each with the guarantee of its own fit.
    """

    models: tuple[Any, ...] = ()


def _plain(score: Any) -> dict[str, Any]:
    fields = score.__dict__ if isinstance(score, Score) else score._asdict()
    return {name: np.asarray(value).tolist() for name, value in fields.items()}
