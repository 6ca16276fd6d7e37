"""Zarr stores, and what was commanded before each of their samples."""
