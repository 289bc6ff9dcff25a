"""
Records on many machines
========================

``fit`` accepts dask arrays and data frames. Each worker sums the exact integer counts of its
partitions. The driver sums the counts of the workers and adds noise **once**: there is one release
and one charge, whatever the number of partitions. Releasing every partition separately would add
noise to each of them.
"""

# %%
# Sixteen partitions of 10,000 people. They are created on the workers; nothing is in memory yet.
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant

PARTITION, D = 10_000, 12


def people(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, PARTITION)
    yes = 0.25 + 0.04 * ((y[:, None] * np.arange(1, D + 1)) % 7)
    return np.column_stack([rng.random((PARTITION, D)) < yes, y]).astype(np.int8)


parts = [
    da.from_delayed(dask.delayed(people)(seed), (PARTITION, D + 1), np.int8) for seed in range(16)
]
records = da.concatenate(parts)
X, y = records[:, :D], records[:, D]
X

# %%
# The model is exactly the same as on one machine, because sums of integers do not depend on their
# order. A seed shows this, since the noise is then the same too.
dask.config.set(scheduler="threads", num_workers=2)
model = BayesianNaiveBayes(
    0.1, bounds=([0] * D, [1] * D), n_bins=2, classes=[0, 1, 2], temperature=1, random_state=0
)
ledger = BudgetAccountant(epsilon=1.0)
distributed = model.set_params(accountant=ledger).fit(X, y).posterior_.mean()
local = model.set_params(accountant=None).fit(X.compute(), y.compute()).posterior_.mean()
print("the same:", all(np.array_equal(a, b) for a, b in zip(distributed, local, strict=True)))
print("charged:", ledger.total().epsilon, "in", len(ledger), "entry")

# %%
# The noise does not depend on the number of records, so with more records the same accuracy needs a
# smaller epsilon. (To compute many curves from one pass over the data, ``exact_statistics`` keeps
# the counts. They are as sensitive as the records, but these are simulated. A temperature cannot be
# learned from counts, so it is set.)
test = people(99)
sizes = [1, 2, 4, 8, 16]
model.set_params(temperature=1)
exact = [model.exact_statistics(X[: size * PARTITION], y[: size * PARTITION]) for size in sizes]


def accuracy(statistics, epsilon, seed):
    released = model.set_params(epsilon=epsilon, random_state=seed).fit_statistics(statistics)
    return np.mean(released.predict(test[:, :D]) == test[:, D])


figure, ax = plt.subplots(figsize=(7, 4))
for epsilon in (0.003, 0.01, 0.1, np.inf):
    scores = [np.mean([accuracy(one, epsilon, seed) for seed in range(5)]) for one in exact]
    name, style = ("no privacy", "k--") if np.isinf(epsilon) else (f"ε = {epsilon:g}", "o-")
    ax.plot(np.array(sizes) * PARTITION, scores, style, label=name)
ax.set(xscale="log", xlabel="records", ylabel="accuracy", title="One release of all partitions")
ax.set_xticks(np.array(sizes) * PARTITION, [f"{s * PARTITION:,}" for s in sizes])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
