"""The bounds of the papers behind this library, as plain functions of public quantities.

They follow Zhang, Rubinstein and Dimitrakakis, *On the differential privacy of Bayesian inference*
(AAAI 2016), below "Zhang et al.", and Dimitrakakis, Nelson, Mitrokotsa and Rubinstein, *Robust
and private Bayesian inference* (ALT 2014), below "Dimitrakakis et al.", corrected where those are
wrong; the documentation lists the errata.
"""

from __future__ import annotations

from dpbayes_sklearn.theory.exponential_mechanism import (
    map_failure_bound,
    map_score_gap,
    mass_change_bound,
)
from dpbayes_sklearn.theory.fourier import (
    coefficient_count,
    fourier_table_quantile,
    paper_fourier_table_bound,
    table_bound,
)
from dpbayes_sklearn.theory.lipschitz import (
    bernoulli_concentration,
    bernoulli_lipschitz,
    composed_concentration,
    composed_lipschitz,
    exponential_concentration,
    families_per_node,
    laplace_concentration,
    lifted_concentration,
    lifted_lipschitz,
    normal_concentration,
    table_lipschitz,
)
from dpbayes_sklearn.theory.regression import likelihood_range, regression_sampler_epsilon
from dpbayes_sklearn.theory.sampling import (
    KAPPA,
    OMEGA,
    averaging_error,
    distinguishable_distance,
    divergence_bound,
    sampler_epsilon,
    smoothness_constant,
    stochastic_distinguishable_distance,
    stochastic_divergence_bound,
    total_variation_bound,
    truncation_for,
)
from dpbayes_sklearn.theory.updates import (
    beta_divergence,
    cell_count,
    count_error_quantile,
    divergence_deviation,
    divergence_range,
    expected_divergence,
    update_bound,
)

__all__ = [
    "KAPPA",
    "OMEGA",
    "averaging_error",
    "bernoulli_concentration",
    "bernoulli_lipschitz",
    "beta_divergence",
    "cell_count",
    "coefficient_count",
    "composed_concentration",
    "composed_lipschitz",
    "count_error_quantile",
    "distinguishable_distance",
    "divergence_bound",
    "divergence_deviation",
    "divergence_range",
    "expected_divergence",
    "exponential_concentration",
    "families_per_node",
    "fourier_table_quantile",
    "laplace_concentration",
    "lifted_concentration",
    "lifted_lipschitz",
    "likelihood_range",
    "map_failure_bound",
    "map_score_gap",
    "mass_change_bound",
    "normal_concentration",
    "paper_fourier_table_bound",
    "regression_sampler_epsilon",
    "sampler_epsilon",
    "smoothness_constant",
    "stochastic_distinguishable_distance",
    "stochastic_divergence_bound",
    "table_bound",
    "table_lipschitz",
    "total_variation_bound",
    "truncation_for",
    "update_bound",
]
