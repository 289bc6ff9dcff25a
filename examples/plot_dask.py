"""
Records on many machines
========================

``fit`` takes dask arrays and data frames as they are. Each worker adds up exact integer counts of
its partitions, the driver adds up the workers' counts and draws the noise **once**: one release,
one charge, whatever the number of partitions. Releasing every partition by itself would put noise
into each of them.
"""

# %%
# Sixteen partitions of 10,000 people, made where they are needed: nothing is in memory yet.
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
# Exactly the same model as from one machine's memory: sums of integers have no order. A seed shows
# it, as the noise is then the same too.
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
# Why it matters: the noise does not depend on the number of records, so more records give the same
# accuracy at a smaller epsilon. (To draw many curves from one pass over the data,
# ``exact_statistics`` keeps the counts. They are as sensitive as the records; here all are
# simulated. Counts alone do not suffice to learn a temperature, so it is given.)
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
