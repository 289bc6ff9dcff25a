"""
Journey: who comes back to a hospital?
======================================

A CSV file with several rows a patient, dates, notes, typos, and rows without an outcome becomes a
model that may be published, with its evaluation and its card. All rows of a patient are protected,
and so is whether somebody was there at all.
"""

# %%
# The file is simulated (``journey_data.py``); ``later.csv`` has other patients, for the evaluation.
from datetime import date

import matplotlib.pyplot as plt
import pandas as pd
from journey_data import shell, visits

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyUnit,
    ReliabilityDisplay,
    Schema,
)
from dpbayes_sklearn.metrics import private_score

here = visits()

# %%
# In Python
# ---------
# The schema comes from the form that the hospital uses, not from the records. An age of 999 counts
# as 95, a ward that is not listed as "other", and rows without an outcome are left out.
table, later = (pd.read_csv(here / f, parse_dates=[2]) for f in ("visits.csv", "later.csv"))
ward = Categories(["bone", "heart", "lung", "other"], unseen="other")
admitted = Interval(date(2023, 1, 1), date(2025, 1, 1), bins=4)
columns = {"age": Interval(18, 95, bins=6), "admitted": admitted, "ward": ward}
schema = Schema(columns, target=Categories(["no", "yes"]))
unit = PrivacyUnit("person", max_records=2, neighbours="add_remove")
ledger = BudgetAccountant(epsilon=2.0, path=here / "visits.sqlite")
model = BayesianNaiveBayes(1.0, schema=schema, privacy_unit=unit, accountant=ledger)
model.fit(table, target="back", groups="patient")
asked = {"scoring": ["accuracy", "roc_auc", "calibration_curve"], "groups": later["patient"]}
found = private_score(model, later, later["back"], epsilon=1.0, **asked)
_ = (here / "card.html").write_text(model.card("html", evaluation=found, title="Who comes back"))

# %%
# The evaluation has its own guarantee; its patients are in no training row.
print(found)
print(model.guarantee_)
figure, ax = plt.subplots(figsize=(5.2, 4.6))
ReliabilityDisplay.from_evaluation(found, label="private, ε = 1", ax=ax)
plt.show()

# %%
# On the command line
# -------------------
# ``dpbayes schema`` writes a template; filled in, it says the same as the schema above.
(here / "schema.json").write_text(
    """{"columns": {
    "age": {"low": 18, "high": 95},
    "admitted": {"low": "2023-01-01", "high": "2025-01-01"},
    "ward": {"values": ["bone", "heart", "lung", "other"], "unseen": "other"}},
 "target": {"values": ["no", "yes"]}}"""
)
commands = r"""
dpbayes schema visits.csv --target back --out template.json
dpbayes fit visits.csv --target back --schema schema.json --epsilon 1 --groups patient \
    --max-records 2 --add-remove --ledger budget.sqlite --ceiling 2
dpbayes evaluate model.json later.csv --target back --groups patient --epsilon 1 \
    --scoring accuracy roc_auc --ledger budget.sqlite --title "Who comes back"
"""
shell(commands, here)
