"""Recorder, replay and salvage of bags."""
