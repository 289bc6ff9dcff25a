"""The command line: a private model of a CSV file, without Python code."""
