"""
Comparing four mechanisms
=========================

The same model can be released with the same guarantee in four ways: noise on the counts, noise
on their Fourier coefficients, draws from the posterior, or one draw near its mode. The best choice
depends on the number of records, the shape of the data and the budget.
:class:`~dpbayes_sklearn.PrivacyUtilityDisplay` compares them.
"""

# %%
# 569 tumours with ten measurements each, with declared ranges.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from dpbayes_sklearn import BayesianNaiveBayes, PrivacyUtilityDisplay, planning

X, y = load_breast_cancer(return_X_y=True)
low = [6, 9, 40, 140, 0.05, 0, 0, 0, 0.1, 0.04]
high = [30, 40, 190, 2600, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1]
model = BayesianNaiveBayes(bounds=(low, high), n_bins=2, classes=[0, 1])

# %%
# The noise of a release depends only on public facts, so it is known before any data are read.
# (``planning.recommend`` also simulates the inference that follows, and names the best mechanism.)
for mechanism in ("laplace", "fourier"):
    error = planning.expected_error(model.set_params(mechanism=mechanism), n=455, epsilon=1.0)
    print(f"{mechanism:8} mean error of a count: {error.mean:.1f} records")

# %%
# Cross-validated accuracy for every mechanism and budget. Scores are computed without noise, so use
# public data, as here.
figure, ax = plt.subplots(figsize=(7, 4))
display = PrivacyUtilityDisplay.from_estimator(
    model, X[:, :10], y, epsilons=[0.1, 0.3, 1.0, 3.0, 10.0], cv=5, ax=ax
)
ax.set(title="Naive Bayes on tumours", ylabel="accuracy")
plt.show()
