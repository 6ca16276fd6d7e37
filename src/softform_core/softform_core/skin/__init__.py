"""Skins: meshes bound to a robot's surface (paper 002, Sec. III)."""
