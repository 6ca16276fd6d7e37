"""How the networks are trained, from simulated or captured shapes to model files with cards."""
