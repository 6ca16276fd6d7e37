"""Training of the networks, from simulated or captured shapes to model files with cards."""
