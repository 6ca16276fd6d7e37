"""The arm of paper 002: its tip led by the finite-element model, against a reality unlike it."""
