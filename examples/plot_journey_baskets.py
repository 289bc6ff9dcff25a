"""
Journey: who shops for a child? Baskets of 300 items
====================================================

Three hundred columns need much noise for a pure epsilon. With a delta, ``mechanism="auto"`` uses
Gaussian noise, which needs less. One line declares all items.
"""

# %%
# The file is simulated (``journey_data.py``); ``more.csv`` has other baskets, for the evaluation.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from journey_data import baskets, shell

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, Categories, Schema, planning
from dpbayes_sklearn.metrics import private_score

here = baskets()

# %%
# In Python
# ---------
table, more = (pd.read_csv(here / name, sep=";") for name in ("baskets.csv", "more.csv"))
items = table.columns.drop("child")
schema = Schema(dict.fromkeys(items, Categories([0, 1])), target=Categories(["no", "yes"]))
ledger = BudgetAccountant(epsilon=2.0, delta=1e-6, path=here / "baskets.sqlite")
model = BayesianNaiveBayes(1.0, delta=1e-6, mechanism="auto", schema=schema, accountant=ledger)
print(planning.report(model, n=len(table)))
model.fit(table[items], table["child"])
asked = {"scoring": ["accuracy", "roc_auc"], "epsilon": 1.0}
found = private_score(model, more[items], more["child"], **asked)
card = model.card("html", evaluation=found, title="Baskets with a child")
_ = (here / "card.html").write_text(card)

# %%
print(found)
largest = np.argsort(model.feature_importances_)[-12:]
figure, ax = plt.subplots(figsize=(6, 3.6))
ax.barh(items[largest], model.feature_importances_[largest], color="#2f7fc1")
ax.set(xlabel="share of the information about the class", title="Twelve items that tell most")
plt.show()

# %%
# On the command line
# -------------------
# ``"*"`` stands for all columns that are not listed.
(here / "schema.json").write_text(
    '{"columns": {"*": {"values": [0, 1]}}, "target": {"values": ["no", "yes"]}}'
)
commands = r"""
dpbayes fit baskets.csv --sep ";" --target child --schema schema.json --epsilon 1 --delta 1e-6 \
    --mechanism auto --ledger budget.sqlite --ceiling 2 --ceiling-delta 1e-6
dpbayes evaluate model.json more.csv --sep ";" --target child --epsilon 1 \
    --scoring accuracy roc_auc --ledger budget.sqlite
"""
shell(commands, here)
