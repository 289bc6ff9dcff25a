"""Tables of counts: statistics, inference and predictions of discrete networks."""
