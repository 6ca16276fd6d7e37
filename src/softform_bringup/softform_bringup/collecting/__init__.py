"""Collecting frames for sim-to-real learning: the work of node `collector`, and its client."""
