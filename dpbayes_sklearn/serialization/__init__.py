"""Released models as JSON text with a checked form: nothing in a file is ever run or imported."""

from dpbayes_sklearn.serialization.codecs import Codec
from dpbayes_sklearn.serialization.document import estimator_name, read_model, write_model

__all__ = ["Codec", "estimator_name", "read_model", "write_model"]
