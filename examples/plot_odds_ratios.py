"""
Odds ratios from a medical table
================================

A logistic regression of readmission to a hospital, from a CSV file to a forest plot. The odds
ratios have 95 % intervals that include the noise of privacy; the figure shows which part of them
privacy adds.
"""

# %%
# The file. It is simulated here: 20,000 patients, of whom about a quarter were readmitted.
from io import StringIO

import numpy as np
import pandas as pd

from dpbayes_sklearn import (
    BayesianLogisticRegression,
    BudgetAccountant,
    Categories,
    ForestDisplay,
    Interval,
    Schema,
)

rng = np.random.default_rng(0)
n = 20_000
patients = pd.DataFrame(
    {
        "age": rng.normal(62, 13, n).round(),
        "stay": rng.gamma(2.0, 3.0, n).round(1),
        "smoker": rng.choice(["never", "former", "current"], n, p=[0.5, 0.3, 0.2]),
        "diabetes": rng.choice(["no", "yes"], n, p=[0.82, 0.18]),
        "sex": rng.choice(["female", "male"], n),
    }
)
true_odds = {"former": 1.3, "current": 1.8, "yes": 1.6}
log_odds = -3.4 + 0.025 * patients.age + 0.05 * patients.stay
log_odds += np.log(patients.smoker.map(true_odds).fillna(1.0))
log_odds += np.log(patients.diabetes.map(true_odds).fillna(1.0))
patients["readmitted"] = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "yes", "no")
file = StringIO(patients.to_csv(index=False))

# %%
# What is public: which values a column may have. None of it is read from the file.
schema = Schema(
    {
        "age": Interval(18, 100),
        "stay": Interval(0, 60),
        "smoker": Categories(["never", "former", "current"]),
        "diabetes": Categories(["no", "yes"]),
        "sex": Categories(["female", "male"]),
    },
    target=Categories(["no", "yes"]),
)

# %%
# One fit, charged to a ledger. ``effects="linear"`` gives numbers an odds ratio per unit, and
# ``intervals=True`` spends a part of epsilon on the curvature of the likelihood, without which no
# interval would be known. The seed is for this page only: never publish a fit with a seed.
frame = pd.read_csv(file)
ledger = BudgetAccountant(epsilon=1.0)
model = BayesianLogisticRegression(
    1.0, effects="linear", intervals=True, schema=schema, accountant=ledger, random_state=1
).fit(frame.drop(columns="readmitted"), frame["readmitted"])
print(model.coefficients())

# %%
# The wide band is the interval; the narrow one is what it would be without the privacy noise.
ForestDisplay.from_estimator(model)

# %%
# Odds ratios per year and per day are close to one. Ten years are more telling:
age = model.coefficients()["age"]
ends = np.exp(10 * np.array([age.estimate, age.low, age.high]))
print("ten years of age: odds ratio {:.2f} (95 % from {:.2f} to {:.2f})".format(*ends))
print(model.guarantee_)
