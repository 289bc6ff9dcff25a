"""What preprocessing releases of columns: quantiles and common texts."""
