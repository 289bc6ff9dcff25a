"""Linear regression: design, moments, their release and inference."""
