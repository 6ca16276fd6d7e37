"""Shape prediction from measured values."""
