"""
Grades and classes
==================

Classes in an order share one odds ratio for each column; classes without an order have one each.
Both are one release, whatever the number of classes.
"""

# %%
# Patients whose recovery has three grades. The odds of a higher grade depend on age and treatment.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianLogisticRegression, Categories, Interval, Schema

rng = np.random.default_rng(0)
n = 10_000
X = pd.DataFrame({"age": rng.uniform(20, 90, n), "arm": rng.choice(["placebo", "drug"], n)})
z = -0.04 * (X["age"] - 55) + 0.8 * (X["arm"] == "drug") + rng.logistic(size=n)
grades = ["none", "partly", "fully"]
grade = np.array(grades)[np.digitize(z, [-0.5, 1.5])]
schema = Schema({"age": Interval(20, 90), "arm": Categories(["placebo", "drug"])})
given = {"effects": "linear", "schema": schema, "classes": grades, "random_state": 0}

# %%
# The order is that in which the classes are declared. The true odds ratio of the drug is 2.2.
ordered = BayesianLogisticRegression(1.0, ordered=True, **given).fit(X, grade)
ordered.coefficients()

# %%
# Without an order every class has odds of its own against a reference.
several = BayesianLogisticRegression(1.0, **given).fit(X, grade)
several.coefficients(reference="none")

# %%
# Both say how likely the grades are by age.
ages = np.linspace(20, 90, 50)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (title, model) in zip(axes, {"ordered": ordered, "softmax": several}.items(), strict=True):
    p = model.predict_proba(pd.DataFrame({"age": ages, "arm": "drug"}))
    by_grade = dict(zip(model.classes_, p.T, strict=True))
    ax.stackplot(ages, [by_grade[name] for name in grades], labels=grades, alpha=0.8)
    ax.set(title=title, xlabel="age, with the drug", xlim=(20, 90), ylim=(0, 1))
axes[0].set_ylabel("probability")
axes[0].legend(loc="upper right")
plt.show()
