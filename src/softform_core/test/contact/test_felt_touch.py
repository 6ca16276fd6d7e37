"""Where a robot is touched and how hard, by markers and by scans: against a reality that differs from the model."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.contact.felt_touch import felt_stiffness, felt_touch
from softform_core.contact.sights import MarkerSight, ScanSight
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import SimulatedBody, rest_points

pytest.importorskip("ipctk", reason="ipctk is not installed")

BODY = load_robot("membrane").body
PRESSURES = np.full(9, 3000.0)
ERROR, SCANNED = 1e-4, 2.5e-4  # m, of a marker and of a point of a scan
PLACES = np.stack(np.meshgrid(*2 * [np.linspace(-0.13, 0.13, 9)]), axis=-1).reshape(-1, 2)


def weights_at(body: SimulatedBody) -> csr_matrix:
    """Of a body's points in markers at places of the sheet at rest: of the nearest three, by barycentric weights."""
    rest = rest_points(body)[:, :2]
    rows = np.zeros((len(PLACES), len(rest)))
    for row, place in enumerate(PLACES):
        near = cKDTree(rest).query(place, k=4)[1]
        away = np.abs(rest[near] - place)
        span = np.ptp(rest[near], axis=0)
        rows[row, near] = ((1.0 - away / span).clip(0.0)).prod(axis=1)
        rows[row] /= rows[row].sum()
    return csr_matrix(rows)


def balanced(body: SimulatedBody) -> Array:
    found = find_equilibria(body, PRESSURES[None])
    assert not found.failures[0]
    return body.points(found.unknowns)[0]


def markers(body: SimulatedBody, noise: int, model: SimulatedBody) -> MarkerSight:
    """Of the real body, as the model knows them."""
    off = ERROR * np.random.default_rng(noise).standard_normal((len(PLACES), 3))
    return MarkerSight(weights_at(model), weights_at(body) @ balanced(body) + off)


def scan(body: SimulatedBody, noise: int, model: SimulatedBody) -> ScanSight:
    """Of the real body, 3000 points anywhere on it."""
    random, points = np.random.default_rng(noise), balanced(body)
    corners = points[body.faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    chosen = corners[random.choice(len(corners), 3000, p=area / area.sum())]
    places = np.einsum("ncx,nc->nx", chosen, random.dirichlet(np.ones(3), 3000))
    return ScanSight(places + SCANNED * random.standard_normal(places.shape))


@pytest.mark.long
@pytest.mark.parametrize(("look", "error"), [(markers, ERROR), (scan, SCANNED)])
def test_a_touch_is_felt_within_fifteen_per_cent_on_a_reality_unlike_the_model(look, error):
    """Finer, a tenth softer, unevenly thick and of walls a third less stiff than the model says."""
    ball = {"shape": "sphere", "name": "ball", "centre": (0.03, -0.02, 0.065), "radius": 0.035}
    real = BODY.reality_type().model_validate({
        "cells": 21,
        "material": {"law": "yeoh", "coefficients": [144e3, 1e3, 3.6e3]},
        "thickness": {"variation": 0.05, "seed": 3},
        "wall_stiffness_scale": 0.7,
    })  # fmt: skip
    contact = {"obstacles": [ball]}
    touched = type(BODY).model_validate(BODY.model_dump() | {"contact": contact}).real_simulator(real)
    truth = touched.touches(find_equilibria(touched, PRESSURES[None]).unknowns[0])[0]
    assert truth.force[2] < -10.0
    model = BODY.model_copy(update={"cells": 15}).simulator()
    free = look(BODY.real_simulator(real), 2, model)
    stiffness = felt_stiffness(model, PRESSURES, free)
    assert 0.75 < stiffness < 0.95
    felt = felt_touch(model, PRESSURES, look(touched, 1, model), error, free, stiffness)
    assert np.linalg.norm(felt.force - truth.force) < 0.15 * np.linalg.norm(truth.force)
    assert np.linalg.norm(felt.place - truth.place) < 0.01
    assert felt.after < 0.2 * felt.before


def test_nothing_is_felt_where_nothing_touches():
    model = BODY.model_copy(update={"cells": 9}).simulator()
    felt = felt_touch(model, PRESSURES, markers(model, 1, model), ERROR, free=markers(model, 2, model))
    assert np.linalg.norm(felt.force) < 1.5


def test_markers_that_do_not_fit_and_empty_scans_are_told():
    model = BODY.model_copy(update={"cells": 9}).simulator()
    with pytest.raises(SoftformError, match="80 markers do not fit"):
        MarkerSight(weights_at(model), np.zeros((80, 3)))
    with pytest.raises(SoftformError, match="one at least"):
        ScanSight(np.zeros((0, 3)))
    with pytest.raises(SoftformError, match="no numbers"):
        ScanSight(np.full((5, 3), np.nan))
