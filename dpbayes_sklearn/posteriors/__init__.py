"""posteriors"""
