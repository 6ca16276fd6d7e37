"""Numba kernels: where the rings of an arm are, and how they move with the strains."""

import numba
import numpy as np

from softform_core.bodies.rod.kinematics import mean_tangent_derivative, place_rod, rotation_and_mean


@numba.njit(cache=True, nogil=True)
def ring_frames(arm, skin, strains):  # type: ignore[no-untyped-def]
    """Places (n, R, 3) m and directors (n, R, 3, 3) of the rings under strains (n, E, 4)."""
    samples, rings = strains.shape[0], skin.element.shape[0]
    places, frames = np.empty((samples, rings, 3)), np.empty((samples, rings, 3, 3))
    for n in range(samples):
        directors, _, link_ends = place_rod(arm, strains[n])
        for r in range(rings):
            e = skin.element[r]
            length = skin.share[r] * arm.length[e]
            turn, mean = rotation_and_mean(strains[n, e, :3] * length)
            place = length * (1.0 + strains[n, e, 3]) * (directors[e] @ mean[:, 2].copy())
            if e > 0:
                place = place + link_ends[e - 1]
            frames[n, r] = directors[e] @ turn
            places[n, r] = place + skin.beyond[r] * arm.link_length[e] * frames[n, r][:, 2]
    return places, frames


@numba.njit(cache=True, nogil=True)
def element_twists(arm, element, share, strains):  # type: ignore[no-untyped-def]
    """Shift and turn (n, R, 6, 4), by the strains (n, E, 4) of their own elements, of R places along elements."""
    samples, count = strains.shape[0], element.shape[0]
    found = np.zeros((samples, count, 6, 4))
    for n in range(samples):
        directors, _, _ = place_rod(arm, strains[n])
        for r in range(count):
            q = strains[n, element[r]]
            length, director = share[r] * arm.length[element[r]], directors[element[r]]
            phi = q[:3] * length
            _, mean = rotation_and_mean(phi)
            shift = length**2 * (1.0 + q[3]) * (director @ mean_tangent_derivative(phi))
            turn = length * (director @ mean)
            found[n, r, :3, :3] = shift
            found[n, r, 3:, :3] = turn
            found[n, r, :3, 3] = turn[:, 2]
    return found
