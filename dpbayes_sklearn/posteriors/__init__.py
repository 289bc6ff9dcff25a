"""Released beliefs: mean, draws and predictions, ordinary Bayes from here on."""
