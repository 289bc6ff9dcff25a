"""What a fitted model shows, from public facts only: card, JSON text, HTML, contributions."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._compat import HelpfulEstimator
from dpbayes_sklearn._presenting import Html, card, table, tag
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.privacy import PrivacyGuarantee
from dpbayes_sklearn.privacy.budget import at_least
from dpbayes_sklearn.schema.declared import CARD_COLUMNS
from dpbayes_sklearn.serialization import Codec, estimator_name, read_model, write_model

if TYPE_CHECKING:
    import pandas as pd


_CARD_ERROR = 0.05  # Probability that some released number has a larger error than the card says.
_INFERENCE = {
    "adaptive": "The prior was learned from the released values (empirical Bayes), and the "
    "likelihood includes the distribution of the noise.",
    "noise_aware": "The likelihood includes the distribution of the noise.",
    "plug_in": "Released values are treated as exact; uncertainty due to the noise is ignored.",
    "median": "The likelihood includes the distribution of the noise, but the most central counts "
    "are then treated as exact: intervals are too narrow.",
    "direct": "The mechanism released parameters or a posterior directly, without noisy statistics "
    "to infer them from.",
}
_LISTED_COLUMNS = 10  # The card lists this many columns, those with the largest effect.
_MOST_EFFECTS = 60  # Each effect draws from all tables, so their time grows with the square.
# These mechanisms release parameters of the posterior, not noisy statistics.
_DIRECT = {"sampler", "map"}
# These release one of finitely many results, from which a posterior may be inferred.
_OF_CHOICES = {"exponential", "hellinger", "local"}


@dataclass(frozen=True)
class _Section:
    """A title, sentences and a table with column heads; the table may be empty."""

    title: str
    text: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def model_card(
    model: Any,
    form: str,
    evaluation: Any = None,
    title: str | None = None,
    description: str | None = None,
) -> str:
    """Return the card of a fitted model as ``"markdown"`` or ``"html"``."""
    given = model.guarantee_
    sections = [
        _data(model, description),
        _Section("Privacy", (str(given), given.meaning, given.risk_sentence)),
        *(_model(model, evaluation) if hasattr(model, "posterior_") else ()),  # else a transformer
        _parameters(model),
    ]
    return {"markdown": _markdown, "html": _html}[form](title or type(model).__name__, sections)


def _model(model: Any, evaluation: Any) -> Iterator[_Section]:
    """Yield what there is to say about a posterior and its predictions."""
    yield _columns(model)
    accuracy = _accuracy(model, evaluation)
    if accuracy.text or accuracy.rows:
        yield accuracy
    if evaluation is not None:
        about = (evaluation.sentence,), tuple(evaluation.heads), tuple(evaluation.rows)
        yield _Section("Private evaluation", *about)
    yield from _contributions(model)
    yield _inference(model)


def _data(model: Any, description: str | None) -> _Section:
    own = getattr(model, "posterior_", None)
    released = getattr(own, "released", own)
    n, classes = getattr(released, "n", None), getattr(model, "classes_", None)
    features = f"{model.n_features_in_} feature{'s' * (model.n_features_in_ > 1)}"
    parts = [features, *([f"{len(classes)} classes"] if classes is not None else [])]
    copies = getattr(model, "_copies", None)
    most = 0 if copies is None else copies.most
    secret = most or model.guarantee_.privacy_unit.size_is_secret  # n is released, with noise
    about = f"{'about ' * bool(secret)}{n or 0:,}"
    what = f"a total weight of {about}" if most > 1 else f"{about} records"
    records = "" if n is None else f", fitted to {what}"
    said = [] if description is None else [description]
    version = sys.modules["dpbayes_sklearn"].__version__  # which is defined above all modules
    said.append(f"{type(model).__name__} with {' and '.join(parts)}{records}.")
    said.append(f"Described on {date.today()} by dpbayes_sklearn {version}.")
    return _Section("Data", tuple(said))


def _columns(model: Any) -> _Section:
    schema = getattr(model, "schema_", None)
    if schema is None:
        known = getattr(model, "categories_", None)
        values = "0 and 1" if known is None else known.described().domain
        return _Section("Values", (f"{values}.",))
    rows = schema.described(getattr(model, "_skips_missing", False))
    why = "Values outside their domain are mapped into it, both in fitting and in prediction."
    return _Section("Columns", (why,), CARD_COLUMNS, tuple(rows))


def _accuracy(model: Any, evaluation: Any) -> _Section:
    released: Any = getattr(model.posterior_, "released", None)
    facts, heads, rows = [], (), ()
    if getattr(released, "laws", None):
        bound = released.error_bound(_CARD_ERROR)
        facts.append(
            f"With probability {1 - _CARD_ERROR:g}, every released number differs from the exact "
            f"one by at most {bound:.3g}."
        )
    if hasattr(model, "coefficients"):
        found = model.coefficients()
        heads, rows = found.heads, found.cells
        if found.remark:
            facts.append(found.remark)
        if not found.no_intervals and not hasattr(model, "inference"):
            facts.append("The intervals of the coefficients include the privacy noise.")
        elif not found.no_intervals and _how(model) == "noise_aware":
            facts.append(
                "The intervals of the coefficients include the privacy noise, and so do the "
                "standard deviations of predictions."
            )
    if evaluation is None and hasattr(model, "predict"):
        facts.append(
            "Measure the accuracy of predictions on private records with metrics.private_score: an "
            "exact score is not covered by the guarantee."
        )
    return _Section("Accuracy", tuple(facts), tuple(heads), tuple(rows))


def _contributions(model: Any) -> list[_Section]:
    """Return the columns that change predictions most, if predictions are sums over columns."""
    if model.n_features_in_ > _MOST_EFFECTS:
        return []
    try:
        effects = [model.effect(name) for name in model.schema_.columns]
    except (AttributeError, ValueError):  # averages over several draws are none
        return []
    widths = [float(np.ptp(effect.value, axis=-1).max()) for effect in effects]
    order = np.argsort(widths)[::-1][:_LISTED_COLUMNS]
    rows = tuple((effects[j].name, f"{widths[j]:.3g}") for j in order)
    why = f"By how much the values of a column can change the {effects[0].what}, at most."
    return [_Section("Contributions", (why,), ("column", "largest difference"), rows)]


def _inference(model: Any) -> _Section:
    facts = [_INFERENCE[_how(model)]] if _how(model) in _INFERENCE else []
    exact = getattr(model.posterior_, "exact", None)
    if exact is not None:
        facts.append(f"The posterior is {'exact' if exact else 'approximate'}.")
    if hasattr(model, "temperature"):
        facts.append(_calibration(model))
    return _Section("Inference and calibration", tuple(facts))


def _how(model: Any) -> str:
    """Return how the release was used, as the parameter ``inference`` calls it."""
    mechanism, wanted = model.guarantee_.mechanism, str(getattr(model, "inference", ""))
    direct = mechanism in _DIRECT and getattr(model.posterior_, "slopes", None) is None
    if direct or (mechanism in _OF_CHOICES and wanted != "noise_aware"):
        return "direct"
    return "noise_aware" if (mechanism, wanted) == ("fourier", "adaptive") else wanted


def _calibration(model: Any) -> str:
    tempering = getattr(model.posterior_, "tempering", None)
    if tempering is None or tempering.temperature == 1:
        return "Predicted probabilities are those of the model, without a temperature."
    origin = "chosen" if model.temperature == "auto" else "set"
    return (
        f"The evidence of the features has a temperature of {tempering.temperature:.3g}, {origin} "
        "to weight that of dependent ones less; probabilities need not be calibrated."
    )


def _parameters(model: Any) -> _Section:
    hidden = {"accountant", "random_state", "schema", "classes", "bounds", "bounds_X", "bounds_y"}
    rows = [
        (name, _plain(value))
        for name, value in model.get_params(deep=False).items()
        if name not in hidden
    ]
    return _Section("Parameters", (), ("parameter", "value"), tuple(rows))


def _plain(value: Any) -> str:
    """Return a parameter as text; exact fractions, such as a share of a budget, rounded up."""
    return at_least(value) if isinstance(value, Fraction) else str(value)


def _markdown(title: str, sections: Iterable[_Section]) -> str:
    parts = [f"# {title}"]
    for section in sections:
        parts += [f"## {section.title}", *section.text]
        if section.rows:
            lines = (section.heads, ("---",) * len(section.heads), *section.rows)
            parts.append("\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(title: str, sections: Iterable[_Section]) -> str:
    parts: list[Html] = []
    for section in sections:
        parts.append(tag("h4", section.title))
        parts += [tag("p", sentence) for sentence in section.text]
        if section.rows:
            parts.append(table(section.heads, section.rows, text=range(len(section.heads))))
    return card(title, *parts)


class PublishedModel(HelpfulEstimator):
    """Base of all estimators: everything here is made of parameters and released values."""

    posterior_: Any
    guarantee_: PrivacyGuarantee

    _exported: ClassVar[dict[str, Codec[Any]]] = {}
    """Fitted attributes that :meth:`to_json` writes; all others follow from them."""

    def card(
        self,
        form: str = "markdown",
        *,
        evaluation: Any = None,
        title: str | None = None,
        description: str | None = None,
    ) -> str:
        """Return a description of the fitted model for those who will use it.

        The shape of the data, the guarantee with its conditions, the domains of the columns, the
        error due to noise, inference, calibration, and the parameters. All of this is public:
        nothing is computed from the records.

        Parameters
        ----------
        form : {"markdown", "html"}, default="markdown"
        evaluation : Evaluation, optional
            Metrics on private records, of :func:`~dpbayes_sklearn.metrics.private_score`.
        title : str, optional
            Its heading; the name of the estimator if left out.
        description : str, optional
            What the data are, in your words: who was asked, when, and what for.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        if form not in ("markdown", "html"):
            raise ValueError(f"form must be 'markdown' or 'html'. Got {form!r} instead.")
        return model_card(self, form, evaluation, title, description)

    def to_json(self) -> str:
        """Return the fitted model as JSON text, for others to load without trusting a pickle.

        It holds the parameters, the released posterior, the guarantee, and the steps of the
        release, from which others can derive the guarantee; nothing else.
        ``accountant`` and ``random_state`` are left out: with the seed the noise could be removed.

        Returns
        -------
        str
            What :meth:`from_json` and :func:`dpbayes_sklearn.from_json` read.
        """
        check_is_fitted(self)
        return write_model(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the fitted model that :meth:`to_json` wrote; its predictions are the same.

        The text is checked field by field, and nothing in it is run or imported. This checks the
        format, not whether the stated guarantee is true: use files from a source you trust.

        Parameters
        ----------
        text : str

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            If the text is anything else.
        """
        return read_model(cls, text)

    @abstractmethod
    def _restore(self, **released: Any) -> Self:
        """Become fitted by checked values of the attributes in ``_exported``, or refuse them."""

    def _with_card(self, html: str) -> str:
        return html + self._guarantee_card() if hasattr(self, "guarantee_") else html

    def _guarantee_card(self) -> str:
        """Return the card of the guarantee, with the options that the mechanism was given."""
        mechanism: Any = self.get_params(deep=False).get("mechanism")
        if not isinstance(mechanism, BaseEstimator):
            return self.guarantee_.card()
        usual = type(mechanism)().get_params(deep=False)
        given = mechanism.get_params(deep=False).items()
        return self.guarantee_.card(", ".join(f"{k}={v}" for k, v in given if v != usual[k]))

    def _repr_html_inner(self) -> str:
        return self._with_card(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_card(bundle["text/html"])
        return bundle


def published_models(base: type[Any] = PublishedModel) -> dict[str, type[PublishedModel]]:
    """Return the estimators of this library by name, none of other packages."""
    found = {}
    for cls in base.__subclasses__():
        ours = cls.__module__.startswith("dpbayes_sklearn.")
        hooks = (getattr(cls, name) for name in dir(cls))
        whole = not any(getattr(hook, "__isabstractmethod__", False) for hook in hooks)
        if ours and cls._exported and whole:
            found[cls.__name__] = cls
        found |= published_models(cls)
    return found


def from_json(text: str) -> Any:
    """Return the fitted model or transformer that ``to_json()`` of an estimator wrote.

    Nothing in the text is run or imported: an estimator is one of this library, and every field is
    checked. Whether the guarantee in it is true is for its publisher to answer for.

    Parameters
    ----------
    text : str

    Returns
    -------
    estimator
        Without ``accountant`` and ``random_state``, which are never written.

    Raises
    ------
    ValueError
        If the text is anything else.

    Examples
    --------
    >>> from dpbayes_sklearn import BetaBinomial, from_json
    >>> published = BetaBinomial(epsilon=0.5).fit([1, 0, 0, 1, 1]).to_json()
    >>> model = from_json(published)
    >>> model.guarantee_.epsilon, model.to_json() == published
    (0.5, True)
    """
    name, models = estimator_name(text), published_models()
    if name not in models:
        raise ValueError(
            f"The text is not a released model: estimator must be one of "
            f"{', '.join(sorted(models))}."
        )
    return models[name].from_json(text)


@dataclass(frozen=True)
class Contributions:
    """What every column adds to the prediction of every record.

    Attributes
    ----------
    values : array of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
        One number for each record and column; from three classes on, one for each class.
    baseline : float, or array of shape (n_classes,)
        The prediction without any column.
    names : tuple of str
        The columns.
    what : str
        What is added up, such as "log-odds of 1".
    """

    values: FloatArray
    baseline: Any
    names: tuple[str, ...]
    what: str

    @property
    def total(self) -> FloatArray:
        """The predictions: the baseline and all columns."""
        return np.asarray(self.values.sum(axis=1) + self.baseline)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame, one row per record and one column per feature.

        From three classes on, its columns are pairs of feature and class number.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas. Use values and names.") from None
        if self.values.ndim == 2:
            return pd.DataFrame(self.values, columns=[*self.names])
        pairs = pd.MultiIndex.from_product([self.names, range(self.values.shape[2])])
        return pd.DataFrame(self.values.reshape(len(self.values), -1), columns=pairs)


@dataclass(frozen=True)
class Effect:
    """What one column adds, by its value, with a band.

    Attributes
    ----------
    name : str
        The column.
    places : array of shape (n_values,)
        Numbers, or the positions of categories.
    labels : tuple of str
        Names of the values; empty if they are numbers.
    value, low, high : array of shape (n_values,) or (n_classes, n_values)
        Posterior mean, and the ends of a pointwise credible interval that includes the privacy
        noise; NaN if the release says nothing about it.
    steps : bool
        Whether the places are bins of a number, in each of which the value is constant.
    what : str
        What is added up.
    """

    name: str
    places: FloatArray
    labels: tuple[str, ...]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    steps: bool
    what: str


def draws_generator(n_draws: int, random_state: Any) -> np.random.Generator:
    """Return the generator of public draws that ``random_state`` describes."""
    check_scalar(n_draws, "n_draws", Integral, min_val=1)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(seed)


def column_number(names: Sequence[str], feature: Any) -> int:
    """Return the number of a column that is given by its name or number."""
    if isinstance(feature, Integral) and 0 <= int(feature) < len(names):
        return int(feature)
    if isinstance(feature, str) and feature in names:
        return [*names].index(feature)
    raise ValueError(
        f"feature must be the name of a column or its number, from 0 to {len(names) - 1}. "
        f"Got {feature!r} instead."
    )


class HasEffects(Protocol):
    """A fitted model whose predictions are sums of the effects of columns."""

    n_features_in_: int

    def effect(self, feature: int, /) -> Effect:
        """Return what one column adds."""


class EffectImportances:
    """Importances of the columns of a model that has more coefficients than columns."""

    @property
    def feature_importances_(self: HasEffects) -> FloatArray:
        """Share of every column in the ranges of all effects, from the release.

        Selectors of scikit-learn need ``importance_getter="feature_importances_"``: they take
        ``coef_`` first, which has an entry for every category, knot and level of missing values.
        """
        check_is_fitted(self)
        ranges = np.array([np.ptp(self.effect(j).value) for j in range(self.n_features_in_)])
        total = float(ranges.sum())
        return ranges / total if total > 0 else np.full_like(ranges, 1 / len(ranges))
