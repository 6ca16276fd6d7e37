"""How many meshes of soft robots as people export them become bodies, and why the others do not."""
