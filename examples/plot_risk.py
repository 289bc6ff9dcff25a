"""
What an attacker can learn
==========================

A membership attack looks at a release and accuses people of having been in the data. Differential
privacy limits its true positives for every rate of false positives. ``guarantee_.risk`` computes
the limit.
"""

# %%
# Three guarantees: two pure ones, and Gaussian noise at the same ε as the second.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianNaiveBayes

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 2000)
X = (rng.random((2000, 4)) < 0.3 + 0.4 * y[:, None]).astype(int)
declared = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
models = {
    "ε = 0.3": BayesianNaiveBayes(0.3, **declared),
    "ε = 1": BayesianNaiveBayes(1.0, **declared),
    "ε = 1, δ = 10⁻⁶, Gaussian": BayesianNaiveBayes(
        1.0, delta=1e-6, mechanism="gaussian", temperature=0.7, **declared
    ),
}
guarantees = {name: model.fit(X, y).guarantee_ for name, model in models.items()}

# %%
# Left: no attack lies above its curve; the diagonal is guessing. Right: the most that somebody can
# believe after the release, by what they believed before.
rates, priors = np.linspace(0.002, 0.998, 200), np.linspace(0.01, 0.99, 99)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.3))
for name, guarantee in guarantees.items():
    risks = [guarantee.risk(false_positive_rate=rate) for rate in rates]
    left.plot(rates, [risk.true_positive_rate for risk in risks], label=name)
    right.plot(priors, [guarantee.risk(prior=p).posterior for p in priors])
left.set(xlabel="false positive rate", ylabel="true positive rate, at most")
right.set(xlabel="belief before", ylabel="belief after, at most")
for ax in (left, right):
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
    ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1))
left.legend(frameon=False, loc="lower right")
plt.show()

# %%
# In words, at even odds:
print(guarantees["ε = 1"].risk())
