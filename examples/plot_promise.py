"""
What epsilon means
==================

Compare two data sets that differ in the record of one person. A release is private if its outcomes
are about equally likely for both: no outcome is more than :math:`e^\\varepsilon` times as likely.
For a release with finitely many outcomes, this can be computed exactly.
"""

# %%
# Forty people answered a question, and the posterior of the share of "yes" is released. The
# distribution of the release, for 12 and for 13 people who say yes, is computed from public facts.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn.mechanisms import Geometric
from dpbayes_sklearn.papers.choices import outcome_law
from dpbayes_sklearn.privacy import Budget

epsilon, n = 0.5, 40
law = outcome_law(Geometric(), n, (1.0, 1.0), Budget(epsilon))
ours, neighbours = (np.exp(law.log_probabilities([yes])[0]) for yes in (12, 13))

# %%
# No outcome distinguishes well between the two answers of one person: the logarithm of the ratio is
# between -ε and ε, and attains both. If it stayed further inside, budget would be wasted; if it
# went beyond, the guarantee would be false.
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
# The worst case over *all* neighbouring data sets and outcomes is a finite computation. It uses the
# integer weights from which outcomes are drawn:
print(f"worst loss: {law.worst_case().epsilon:.6f}")
