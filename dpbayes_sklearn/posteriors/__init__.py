"""Released posteriors: means, draws and predictions."""
