"""The virtual rig: a simulated reality behind emulated devices."""
