"""Shape prediction from measured pressures."""
