"""Zarr stores, whatever they hold, and the conversion of earlier files."""
