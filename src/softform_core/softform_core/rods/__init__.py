"""Pneumatic rods and inverse kinematics of their tips by N_fk, N_J and N_s2r (paper 001)."""
