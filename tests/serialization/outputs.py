"""Everything that a model shows of what it has learned."""

import numpy as np


def outputs(model, X):
    """Return everything that a model predicts."""
    model = getattr(model, "chosen_", model)
    if hasattr(model, "decision_function"):
        table = [row[1:] for row in model.coefficients().rows]
        return [model.predict(X), model.predict_proba(X), model.coef_, np.nan_to_num(table)]
    if hasattr(model, "predict_proba"):
        return [model.predict(X), model.predict_proba(X), model.log_likelihood(X)]
    if hasattr(model, "cap_"):
        table = [row[1:] for row in model.coefficients().rows]
        return [model.predict(X), np.nan_to_num(table)]
    if hasattr(model, "predict"):
        return [*model.predict(X, return_std=True), model.coef_, np.array(model.intercept_)]
    posterior = model.posterior_
    if hasattr(model, "survival"):
        return [*posterior.survival(0)]
    if hasattr(posterior, "pairs"):
        return [np.asarray(each) for each in vars(posterior).values()]
    if hasattr(posterior, "slopes"):
        return [posterior.mean(), posterior.variance(), posterior.slopes]
    return [np.array(posterior.mean()), posterior.concentration, np.array(posterior.variance())]
