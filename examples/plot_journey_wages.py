"""
Journey: what does a year at school pay?
========================================

A survey of wages becomes a regression with intervals. Nobody has declared the ranges of the
columns: a part of the budget learns them. One in ten did not say what they earn, and is left out.
"""

# %%
# The file is simulated (``journey_data.py``); ``others.csv`` has other people, for the evaluation.
import matplotlib.pyplot as plt
import pandas as pd
from journey_data import shell, wages

from dpbayes_sklearn import BayesianLinearRegression, BudgetAccountant, Categories, Schema
from dpbayes_sklearn.metrics import private_score

here = wages()

# %%
# In Python
# ---------
table, others = (pd.read_csv(here / name) for name in ("wages.csv", "others.csv"))
known = {"region": Categories(["city", "country"])}
ledger = BudgetAccountant(epsilon=2.0, path=here / "wages.sqlite")
with ledger:
    schema = Schema.learn(table, epsilon=0.3, columns=known, bins=None, target="wage")
    model = BayesianLinearRegression(0.7, schema=schema).fit(table, target="wage")
    found = private_score(model, others, others["wage"], scoring=["r2", "mae"], epsilon=1.0)
card = model.card("html", evaluation=found, title="Wages", description="Survey of 18,000 people.")
_ = (here / "card.html").write_text(card)

# %%
# A year at school pays 1.30 in the simulation, a year of experience 0.15, the city 2.00. The
# intervals contain the sampling error and the privacy noise. A coefficient that a release does not
# identify has an estimate without a bar.
print(found)
print(model.coefficients())
rows = [row for row in model.coefficients().rows if row.name != "intercept"]
figure, ax = plt.subplots(figsize=(6, 2.4))
for height, row in enumerate(rows):
    ax.plot([row.low, row.high], [height, height], lw=3, color="#2f7fc1")
    ax.plot(row.estimate, height, "o", color="#2f7fc1")
ax.plot([1.3, 0.15, -2.0], range(len(rows)), "|", ms=18, color="black", label="simulated")
ax.set(yticks=range(len(rows)), yticklabels=[row.name for row in rows], ylim=(-0.6, 2.6))
ax.set(xlabel="wage per hour", title="95 % intervals, privacy noise included")
ax.axvline(0, color="0.8", zorder=0)
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# One sentence says what the learned ranges and the model promise together:
print(model.guarantee_)

# %%
# On the command line
# -------------------
# ``known.json`` declares the regions; everything else is learned, from the same ledger.
(here / "known.json").write_text(
    '{"columns": {"region": {"values": ["city", "country"]}}, "target": null}'
)
commands = r"""
dpbayes learn wages.csv --target wage --numbers school experience wage --schema known.json \
    --bins 0 --epsilon 0.3 --ledger budget.sqlite --ceiling 2 --out schema.json
dpbayes fit wages.csv --target wage --schema schema.json --epsilon 0.7 --ledger budget.sqlite
dpbayes evaluate model.json others.csv --target wage --epsilon 1 --scoring r2 mae \
    --ledger budget.sqlite --title "Wages" --description "Survey of 18,000 people."
"""
shell(commands, here)
