"""The laws of `simulation.materials` for warp kernels, by their numbers there."""

import warp as wp

wp.set_module_options({"enable_backward": False})

# Literals in kernels are of single precision.
_HALF, _ONE = wp.constant(wp.float64(0.5)), wp.constant(wp.float64(1.0))
_TWO, _THREE, _SIX = wp.constant(wp.float64(2.0)), wp.constant(wp.float64(3.0)), wp.constant(wp.float64(6.0))
_NEO_HOOKEAN, _YEOH = wp.constant(0), wp.constant(1)  # the third is gent


@wp.func
def strain_energy(law: int, c: wp.vec3d, j: wp.float64) -> wp.float64:
    """W(j), Pa; infinite past a stretch limit."""
    energy = wp.float64(wp.inf)
    if law == _NEO_HOOKEAN:
        energy = _HALF * c[0] * j
    elif law == _YEOH:
        energy = j * (c[0] + j * (c[1] + j * c[2]))
    elif j < c[1]:
        energy = -_HALF * c[0] * c[1] * wp.log(_ONE - j / c[1])
    return energy


@wp.func
def strain_slopes(law: int, c: wp.vec3d, j: wp.float64) -> tuple[wp.float64, wp.float64]:
    """dW/dI1 and d2W/dI1^2, Pa; infinite past a stretch limit, where there is no equilibrium."""
    slope, curvature = wp.float64(wp.inf), wp.float64(0.0)
    if law == _NEO_HOOKEAN:
        slope = _HALF * c[0]
    elif law == _YEOH:
        slope = c[0] + j * (_TWO * c[1] + _THREE * j * c[2])
        curvature = _TWO * c[1] + _SIX * j * c[2]
    elif j < c[1]:
        slope = _HALF * c[0] * c[1] / (c[1] - j)
        curvature = slope / (c[1] - j)
    return slope, curvature
