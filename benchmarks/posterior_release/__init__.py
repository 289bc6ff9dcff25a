"""The figures of the paper on mechanisms tailored to the Hellinger distance."""
