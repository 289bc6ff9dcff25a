"""
A pipeline for census records
=============================

A typical table has columns of different kinds, some of them skewed, and a text label. Here a
:class:`~sklearn.compose.ColumnTransformer` prepares it for a private naive Bayes. Only one thing
differs from an ordinary pipeline: **no step before the private one may learn from the data**. A
logarithm is fine. A scaler, an imputer or an encoder that is fitted is not, because what it learns
is not protected. Declared domains replace them.
"""

# %%
# Simulated census records: does a person earn more than 50,000?
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import BayesianNaiveBayes, Categories, Interval, Schema

SCHOOL = ["primary", "secondary", "college", "bachelor", "master"]
WORK = ["private", "public", "self-employed"]


def census(n, seed):
    rng = np.random.default_rng(seed)
    school = rng.choice(5, n, p=[0.1, 0.4, 0.25, 0.17, 0.08])
    age = rng.integers(17, 91, n)
    hours = np.clip(rng.normal(40, 12, n), 1, 99).round()
    gain = np.where(rng.random(n) < 0.1, rng.lognormal(8, 1, n), 0).round()
    score = 0.9 * school + 0.05 * hours + 0.0004 * gain - ((age - 50) / 20) ** 2 - 4.5
    people = pd.DataFrame(
        {
            "age": age,
            "school": np.take(SCHOOL, school),
            "work": rng.choice(WORK, n, p=[0.7, 0.15, 0.15]),
            "hours": hours,
            "capital_gain": gain,
        }
    )
    return people, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), ">50K", "<=50K")


people, income = census(8000, seed=0)
people.head(3)

# %%
# The schema describes the columns *after* the transformer: the logarithm of the gain is between 0
# and 12 for gains below 160,000, and larger ones are clipped.
schema = Schema(
    {
        "capital_gain": Interval(0, 12, bins=4),
        "age": Interval(17, 90, bins=8),
        "school": Categories(SCHOOL),
        "work": Categories(WORK),
        "hours": Interval(1, 99, bins=8),
    },
    target=Categories(["<=50K", ">50K"]),
)
logarithm = FunctionTransformer(np.log1p, feature_names_out="one-to-one")  # learns nothing
prepare = ColumnTransformer(
    [("log", logarithm, ["capital_gain"])], remainder="passthrough", verbose_feature_names_out=False
).set_output(transform="pandas")
pipeline = make_pipeline(prepare, BayesianNaiveBayes(schema=schema, random_state=0))

# %%
# The pipeline is an ordinary one: ``set_params`` sets the budget, and the fitted model has a
# guarantee.
X_train, X_test, y_train, y_test = train_test_split(people, income, random_state=0)
pipeline.fit(X_train, y_train)
print(pipeline[-1].guarantee_)
pipeline

# %%
# The model's probability of a high income by education and weekly hours, for a 45-year-old
# employee: without privacy, and at two budgets. With a smaller budget, differences that could be
# due to noise are shrunk.
hours = np.arange(15, 80, 6)
grid = pd.DataFrame(
    [(45, school, "private", h, 0) for school in SCHOOL for h in hours], columns=people.columns
)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True)
for ax, epsilon in zip(axes, (np.inf, 1.0, 0.1), strict=True):
    pipeline.set_params(bayesiannaivebayes__epsilon=epsilon).fit(X_train, y_train)
    chance = pipeline.predict_proba(grid)[:, 1].reshape(len(SCHOOL), -1)
    shown = ax.imshow(
        chance, origin="lower", aspect="auto", cmap="viridis", vmin=0, vmax=1, extent=(12, 81, 0, 5)
    )
    name = "no privacy" if np.isinf(epsilon) else f"ε = {epsilon:g}"
    ax.set(title=f"{name}, accuracy {pipeline.score(X_test, y_test):.3f}", xlabel="hours a week")
axes[0].set_yticks(np.arange(5) + 0.5, SCHOOL)
figure.colorbar(shown, ax=axes, label="P(income > 50K)")
plt.show()
