"""The rod: pneumatic sections one behind the other (paper 001)."""
