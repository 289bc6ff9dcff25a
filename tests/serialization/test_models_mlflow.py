"""Models in mlflow, which stores them with skops; run where both are installed."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes

mlflow = pytest.importorskip("mlflow.sklearn")
skops = pytest.importorskip("skops.io")

X = np.random.default_rng(0).random((300, 2))
Y = (X[:, 0] > 0.5).astype(int)
MODELS = [
    BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=4),
    BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=4, mechanism="fourier"),
    BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)),
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_comes_back(model, tmp_path):
    model.fit(X, Y)
    types = skops.get_untrusted_types(data=skops.dumps(model))
    assert all(
        name.startswith("dpbayes_sklearn.") or name == "fractions.Fraction" for name in types
    )
    mlflow.save_model(model, tmp_path / "model", skops_trusted_types=types)
    back = mlflow.load_model(str(tmp_path / "model"))
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back.guarantee_ == model.guarantee_
