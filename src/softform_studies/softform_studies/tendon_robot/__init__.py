"""Shapes that remember: what two depth cameras see of a tendon robot with friction (paper 004, Sec. V-B and VI)."""
