"""What acts on the nodes of a mesh: pressure in cavities, weight, springs, cables, grips."""
