"""
Why did the model say that?
===========================

A naive Bayes model adds up evidence, and a linear regression adds up effects. Both can be taken
apart at no further privacy cost: everything here is computed from what was released.
"""

# %%
# A model of a disease on simulated patients.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianNaiveBayes, Categories, ContributionDisplay, Interval, Schema

rng = np.random.default_rng(0)
n = 5000
age = rng.uniform(20, 90, n)
smoker = rng.choice(["no", "former", "yes"], n, p=[0.5, 0.3, 0.2])
pressure = rng.normal(120 + 0.3 * (age - 50), 15, n)
score = 0.06 * (age - 60) + 1.2 * (smoker == "yes") + 0.03 * (pressure - 130)
ill = (score + rng.logistic(size=n) > 0).astype(int)
table = pd.DataFrame({"age": age, "smoker": smoker, "pressure": pressure})
schema = Schema(
    {
        "age": Interval(20, 90, bins=7),
        "smoker": Categories(["no", "former", "yes"]),
        "pressure": Interval(70, 190, bins=8),
    }
)
model = BayesianNaiveBayes(0.5, schema=schema, classes=[0, 1], random_state=0).fit(table, ill)

# %%
# One patient: the bars add up to the log-odds that ``predict_proba`` is made of.
patient = pd.DataFrame({"age": [78.0], "smoker": ["yes"], "pressure": [118.0]})
figure, ax = plt.subplots(figsize=(6.4, 3.2))
ContributionDisplay.from_record(model, patient, ax=ax)
ax.set_title(f"P(ill) = {model.predict_proba(patient)[0, 1]:.2f}")
plt.show()

# %%
# Every feature by its value, with 95 % bands of the released posterior.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True)
for ax, name in zip(axes, table.columns, strict=True):
    ContributionDisplay.from_feature(model, name, ax=ax)
for ax in axes[1:]:
    ax.set_ylabel("")
plt.show()
