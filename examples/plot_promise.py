"""
What epsilon hides
==================

Somebody is in the data, or somebody else is in their place. A release is private when its outcomes
are about equally likely in both cases: no outcome more than :math:`e^\\varepsilon` times as likely.
For a release with finitely many outcomes that can be looked at in full.
"""

# %%
# Forty people were asked a question; the posterior of the share of yes is released. Its law, for
# 12 and for 13 who say yes, is a table that the library computes from public facts alone.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn.mechanisms import Geometric
from dpbayes_sklearn.privacy import Budget

epsilon, n = 0.5, 40
law = Geometric().law(n, (1.0, 1.0), Budget(epsilon))
ours, neighbours = (np.exp(law.log_probabilities([yes])[0]) for yes in (12, 13))

# %%
# Whatever is released, it hardly distinguishes the two answers of one person: the logarithm of the
# ratio stays between -ε and ε, and attains both. A mechanism that stays further inside would waste
# budget; one that goes beyond would not have the stated guarantee.
counts = np.arange(n + 1)
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), height_ratios=(2, 1))
top.bar(counts - 0.2, ours, 0.4, label="12 people said yes")
top.bar(counts + 0.2, neighbours, 0.4, label="13 people said yes")
top.set(ylabel="probability", title=f"One count, released at ε = {epsilon:g}")
top.legend(frameon=False)
bottom.plot(counts, np.log(ours / neighbours), "o", ms=4)
for bound in (-epsilon, epsilon):
    bottom.axhline(bound, color="0.5", ls="--", lw=1)
bottom.set(xlabel="released count", ylabel="log ratio", ylim=(-0.7, 0.7))
plt.show()

# %%
# This is not only a picture. The worst case over *all* neighbouring data sets and outcomes is a
# finite computation, done with the integer weights that are really drawn:
print(f"worst loss: {law.worst_case().epsilon:.6f}")
