"""Buses of motors that pull tendons."""
