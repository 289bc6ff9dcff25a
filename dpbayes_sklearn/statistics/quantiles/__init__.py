"""Quantiles of columns without declared bounds: public lattices, rank scores, order of release."""
