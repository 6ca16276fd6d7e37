"""Demo, doctor, status."""
