"""The race of paper 004: what remembers best how a tendon robot came to its shape."""
