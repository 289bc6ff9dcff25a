"""
Rate ratios
===========

How often something happens, by several columns: one release, ratios with intervals that include the
privacy noise. All that is told is about counts clipped at a public cap.
"""

# %%
# Visits of people who were observed for different times.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianCountRegression, Categories, Interval, Schema

rng = np.random.default_rng(0)
n = 20_000
people = pd.DataFrame(
    {
        "age": rng.uniform(20, 80, n),
        "area": rng.choice(["town", "land", "coast"], n),
        "years": rng.uniform(0.5, 3, n),
    }
)
true = {"age": 0.02, "area=land": 0.4, "area=coast": -0.3}
rate = np.exp(0.02 * (people.age - 50) + people.area.map({"town": 0, "land": 0.4, "coast": -0.3}))
visits = rng.poisson(people.years * rate * rng.gamma(2, 1 / 2, n))
columns = {
    "age": Interval(20, 80),
    "area": Categories(["town", "land", "coast"]),
    "years": Interval(0.5, 3),
}

# %%
# The cap is the largest count that matters: a guess made before anybody looked at these records.
schema = Schema(columns, target=Interval(0, 12))
model = BayesianCountRegression(1.0, schema=schema, exposure="years", random_state=0)
model.fit(people, visits).coefficients()

# %%
# A smaller cap means less noise, and a bias that no number of records removes.
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for i, cap in enumerate((2, 5, 12)):
    model = BayesianCountRegression(2.0, cap=cap, schema=Schema(columns), exposure="years")
    table = model.set_params(random_state=0, intervals=True).fit(people, visits).coefficients()
    ends = np.array([[table[name].low, table[name].high] for name in true])
    place = np.arange(len(true)) + 0.2 * (i - 1)
    ax.hlines(place, *ends.T, lw=3, color=f"C{i}", label=f"cap {cap}")
    ax.plot([table[name].estimate for name in true], place, "ko", ms=3)
ax.plot([*true.values()], np.arange(len(true)), "k|", ms=60, alpha=0.4)
ax.set(yticks=np.arange(len(true)), yticklabels=[*true], xlabel="log rate; grey: true")
ax.legend()
plt.show()
