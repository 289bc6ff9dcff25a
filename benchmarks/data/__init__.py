"""Public and simulated data sets with hand-written public domains."""
