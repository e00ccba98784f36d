"""The checker that is to come beside the one in use, on the same histories."""
