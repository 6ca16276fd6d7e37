"""One folder for each kind of body: its description, its equilibrium problem, and how its realities may differ."""
