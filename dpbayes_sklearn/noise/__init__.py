"""Exact samplers: integers in, integers out, random bytes from one source and nothing rounded."""

from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace, representable_scale
from dpbayes_sklearn.noise.finite import (
    ROUNDING_LOSS,
    finite_draw,
    integer_weights,
    law_loss,
    rounding_loss,
)
from dpbayes_sklearn.noise.source import RandomSource, random_source

__all__ = [
    "ROUNDING_LOSS",
    "RandomSource",
    "discrete_laplace",
    "finite_draw",
    "integer_weights",
    "law_loss",
    "random_source",
    "representable_scale",
    "rounding_loss",
]
