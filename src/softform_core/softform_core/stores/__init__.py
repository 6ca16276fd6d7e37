"""Zarr stores, and the conversion of earlier files."""
