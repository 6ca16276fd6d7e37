"""What the simulation of each shipped robot does as its model (`model: fem`), and how fast."""
