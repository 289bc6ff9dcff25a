"""What the papers define beyond the estimators, kept so that their results can be reproduced.

The estimators are one import away from here: a posterior chosen by its distance from the exact one
(:mod:`~dpbayes_sklearn.papers.choices`, with the candidates and their exact privacy loss), queries
answered by posterior draws (:mod:`~dpbayes_sklearn.papers.query`), and the bounds as functions
(:mod:`~dpbayes_sklearn.papers.theory`).
"""
