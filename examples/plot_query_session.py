"""
Answering questions, one at a time
==================================

No model is published; questions are answered one by one, and each answer has a privacy cost. A
:class:`~dpbayes_sklearn.PosteriorQuerySession` draws new parameters for every question, charges the
ledger before it draws, and stops when the budget is spent.
"""

# %%
# A survey with four yes-or-no answers and two groups of people.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError, PosteriorQuerySession

rng = np.random.default_rng(0)
group = rng.choice(["city", "country"], 5000, p=[0.6, 0.4])
yes = np.where((group == "city")[:, None], [0.7, 0.3, 0.5, 0.2], [0.4, 0.6, 0.5, 0.3])
answers = (rng.random((5000, 4)) < yes).astype(int)
ledger = BudgetAccountant(epsilon=4.0)
model = BayesianNaiveBayes(
    epsilon=0.5,  # the privacy cost of one question
    mechanism="sampler",
    classes=["city", "country"],
    bounds=([0] * 4, [1] * 4),
    n_bins=2,
    accountant=ledger,
    random_state=0,
)

# %%
# A question is any function of the tables: ``tables[j][c, v]`` is the probability of answer v to
# question j in group c, and the last table has the groups' shares. The ninth question is refused.
asked, told, spent = [], [], []
with PosteriorQuerySession(model, answers, group) as session:
    try:
        while True:
            j = len(session) % 4
            told.append(session.query(lambda tables, j=j: tables[j][:, 1]))
            asked.append(j)
            spent.append(session.spent)
    except BudgetError as error:
        print(f"refused after {len(session)} questions: {error.remaining.epsilon} remains")
    print(session.guarantee())

# %%
# Answers are random: two answers to the same question differ. The dashes are the exact values,
# which only the owner of the data knows.
told = np.array(told)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=(2, 1))
for c, (name, colour) in enumerate((("city", "C0"), ("country", "C1"))):
    left.plot(np.array(asked) + 0.1 * (c - 0.5), told[:, c], "o", color=colour, label=name)
    for j in range(4):
        exact = answers[group == name, j].mean()
        left.hlines(exact, j - 0.3, j + 0.3, color=colour, ls="--", lw=1)
left.set(xlabel="question", ylabel="share of yes, as answered", xticks=range(4), ylim=(0, 1))
left.legend(frameon=False)
right.step(range(9), [0, *spent], where="post")
right.axhline(4.0, color="0.5", ls="--", lw=1)
right.set(xlabel="questions asked", ylabel="epsilon spent", ylim=(0, 4.4))
plt.show()
