"""A prismatic soft solid with chambers: description, mesh, equilibrium problem, and how a real one differs."""
