"""Soft sheets in layers over a rigid core: the mannequin (paper 000, Sec. V-A3)."""
