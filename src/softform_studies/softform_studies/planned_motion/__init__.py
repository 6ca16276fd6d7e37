"""Motions planned without and with sim-to-real, carried out in a reality (paper 000, Fig. 20)."""
