"""Times beside floors measured in the same process."""
