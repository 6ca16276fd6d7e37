"""The membrane: a hyperelastic sheet over a grid of chambers (paper 000, Sec. V-A1)."""
