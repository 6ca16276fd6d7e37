"""Captured frames: what the real robot did under known actuations, for sim-to-real learning (paper 000, Sec. V-B2)."""
