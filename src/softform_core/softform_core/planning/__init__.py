"""Collision-free motion of the whole surface (paper 000, Sec. V-E2)."""
