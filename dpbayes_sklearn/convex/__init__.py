"""Models of a convex loss: what their private releases have in common."""
