r"""Inference of naive Bayes tables from noisy ones, with a prior learned from them.

Rows :math:`\theta_{cj}` of one feature share a pooled row :math:`m_j`. Around it they spread with
covariance :math:`g_j S_j`, and the spreads g of all features share one mixture distribution, whose
weights are learned from the released tables (adaptive shrinkage, Stephens 2017). It is empirical
Bayes on a release: post-processing, deterministic, without any privacy cost.
"""

from __future__ import annotations

from dpbayes_sklearn.posteriors.adaptive.inference import AdaptiveTables, adaptive_means
from dpbayes_sklearn.posteriors.adaptive.information import mutual_information
from dpbayes_sklearn.posteriors.adaptive.standard_form import counts_from_rows, merge_counts

__all__ = [
    "AdaptiveTables",
    "adaptive_means",
    "counts_from_rows",
    "merge_counts",
    "mutual_information",
]
