"""The distribution of the noise that was added, as a value: public, without randomness."""
