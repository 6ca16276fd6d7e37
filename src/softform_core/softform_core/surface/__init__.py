"""The robot's surface as a B-spline over the unit square: parametrisation, basis, fit, decoder."""
