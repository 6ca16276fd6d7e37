"""Numba kernels: where the rings of an arm are, and how they move with the strains."""

import numba
import numpy as np

from softform_core.bodies.rod.kinematics import cross, mean_tangent_derivative, place_rod, rotation_and_mean


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
def ring_twists(arm, skin, strains, moves):  # type: ignore[no-untyped-def]
    """Shifts and turns (n, R, 6, c) of the rings as the strains (n, E, 4) move by `moves` (n, E, 4, c)."""
    samples, rings, columns = strains.shape[0], skin.element.shape[0], moves.shape[3]
    found = np.zeros((samples, rings, 6, columns))
    places, _ = ring_frames(arm, skin, strains)
    for n in range(samples):
        directors, ends, _ = place_rod(arm, strains[n])
        for e in range(strains.shape[1]):
            _add_element(arm, skin, directors[e], ends[e], strains[n, e], e, places[n], moves[n, e], found[n])
    return found


@numba.njit(cache=True)
def _add_element(arm, skin, director, end, q, e, places, moves, found):  # type: ignore[no-untyped-def]
    """Add what element e does to all rings from itself on."""
    whole = _twists(director, arm.length[e], q)
    for r in range(places.shape[0]):
        if skin.element[r] < e:
            continue
        if skin.element[r] > e:
            twists, arm_to_ring = whole, places[r] - end
        else:
            length = skin.share[r] * arm.length[e]
            twists = _twists(director, length, q)
            turn, _ = rotation_and_mean(q[:3] * length)
            arm_to_ring = skin.beyond[r] * arm.link_length[e] * (director @ turn)[:, 2]
        for i in range(4):
            carried = cross(twists[i, 3:], arm_to_ring)
            for c in range(moves.shape[1]):
                for a in range(3):
                    found[r, a, c] += (twists[i, a] + carried[a]) * moves[i, c]
                    found[r, 3 + a, c] += twists[i, 3 + a] * moves[i, c]


@numba.njit(cache=True)
def _twists(director, length, q):  # type: ignore[no-untyped-def]
    """Shift and turn (4, 6) of the point at `length` of an element as each of its strains changes."""
    found, phi = np.zeros((4, 6)), q[:3] * length
    _, mean = rotation_and_mean(phi)
    bent = mean_tangent_derivative(phi)
    for i in range(3):
        found[i, :3] = length**2 * (1.0 + q[3]) * (director @ bent[:, i].copy())
        found[i, 3:] = length * (director @ mean[:, i].copy())
    found[3, :3] = length * (director @ mean[:, 2].copy())
    return found
