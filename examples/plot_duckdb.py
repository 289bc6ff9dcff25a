"""
Records in DuckDB
=================

``fit`` accepts a DuckDB relation, a polars ``LazyFrame``, a Spark data frame or any stream of
Arrow. The query is run once, and read a batch at a time. With a seed the model is the
same, to the last bit, as that of the same records in memory.
"""

# %%
# A Parquet file of 200,000 visits. Some cells are missing, and some are no declared values.
import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianNaiveBayes, Categories, Interval, Schema

rng, n = np.random.default_rng(0), 200_000
age, drugs = rng.uniform(18, 88, n), rng.binomial(10, 0.3, n)
people = pd.DataFrame(
    {
        "age": age,
        "drugs": np.where(rng.random(n) < 0.05, np.nan, drugs),
        "ward": rng.choice(["surgery", "medicine", "eye", "Eye"], n),
        "readmitted": np.where(rng.random(n) < 0.1 + age / 300 + drugs / 25, "yes", "no"),
    }
)
file = str(Path(tempfile.mkdtemp()) / "visits.parquet")
duckdb.from_df(people).write_parquet(file)
schema = Schema(
    {
        "age": Interval(18, 90, bins=8),
        "drugs": Interval(0, 10, bins=11, missing="indicator"),
        "ward": Categories(["medicine", "surgery", "eye", "other"], unseen="other"),
    },
    target=Categories(["no", "yes"]),
)

# %%
# Select what you need in the query, and name the target.
visits = duckdb.read_parquet(file).filter("age >= 20")
model = BayesianNaiveBayes(0.1, schema=schema, random_state=0).fit(visits, target="readmitted")
in_memory = BayesianNaiveBayes(0.1, schema=schema, random_state=0)
in_memory.fit(visits.df(), target="readmitted")
print("the same as in memory:", model.to_json() == in_memory.to_json())
print(model.guarantee_)

# %%
# Predictions of a relation are an array. Batches keep the memory small.
reader = visits.select("age", "drugs", "ward").to_arrow_reader(50_000)
risk = np.concatenate([model.predict_proba(batch)[:, 1] for batch in reader])

figure, ax = plt.subplots(figsize=(6, 3.4))
drugs = visits.df()["drugs"]
means = [risk[drugs == k].mean() for k in range(8)]
ax.plot(range(8), means, "o-", label="ε = 0.1")
ax.axhline(risk[drugs.isna()].mean(), ls="--", color="0.5", label="drugs not recorded")
ax.set(xlabel="drugs", ylabel="predicted readmissions", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
