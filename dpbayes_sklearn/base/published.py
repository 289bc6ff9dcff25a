"""Representations of a fitted model: a card, JSON text, and HTML in notebooks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._sklearn_compat import HelpfulEstimator
from dpbayes_sklearn.base.card import model_card
from dpbayes_sklearn.privacy import PrivacyGuarantee
from dpbayes_sklearn.serialization import Codec, read_model, write_model

__all__ = ["PublishedModel"]


class PublishedModel(HelpfulEstimator):
    """Base of all estimators: everything here is made of parameters and released values."""

    posterior_: Any
    guarantee_: PrivacyGuarantee

    _exported: ClassVar[dict[str, Codec]] = {}
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

        It holds the parameters, the released posterior and the guarantee, and nothing else.
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
