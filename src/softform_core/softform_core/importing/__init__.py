"""Simulation data from elsewhere: tables and meshes become the stores that training takes."""
