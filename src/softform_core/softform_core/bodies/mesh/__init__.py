"""A body whose shape is a file: a closed surface, a solid of CAD, or a mesh of tetrahedra."""
