"""What is counted, and how far one record can move it."""
