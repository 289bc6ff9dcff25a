"""A second opinion on the guarantee of a released model: it imports nothing of the library."""
