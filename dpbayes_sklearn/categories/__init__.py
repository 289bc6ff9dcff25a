"""One categorical variable: counts, candidates and posteriors."""
