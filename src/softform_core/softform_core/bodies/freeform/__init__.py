"""Solids of any shape, described by simple parts and meshed by tetrahedra."""
