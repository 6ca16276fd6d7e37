"""Gain and offset of actuations are found in captured frames, outliers or not, and come before N_fk for nothing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import ActuationCorrection, SimToReal
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET
from softform_core.training.actuation_fit import fit_actuation

GAIN = np.array([1.1, 0.9, 1.0, 0.95, 1.05, 1.0, 1.1, 0.92, 1.0])
OFFSET = np.array([100.0, -100.0, 0.0, 50.0, -50.0, 0.0, 80.0, -80.0, 0.0])


@pytest.fixture(scope="module")
def simulated() -> ForwardPipeline:
    network = extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])
    return ForwardPipeline(network, SHEET.samples(900), None, SHEET)


def test_the_corrected_network_is_that_of_the_corrected_actuation() -> None:
    network = extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])
    actuation = np.random.default_rng(0).uniform(500.0, 4500.0, (3, 9))
    corrected = ActuationCorrection(GAIN, OFFSET).before(network)
    np.testing.assert_allclose(corrected.forward(actuation), network.forward(GAIN * actuation + OFFSET), atol=1e-9)


@pytest.mark.parametrize("outliers", [0, 40])
def test_gain_and_offset_are_found(simulated: ForwardPipeline, outliers: int) -> None:
    random = np.random.default_rng(3)
    actuation = random.uniform(500.0, 4000.0, (30, 9))
    real = GAIN * actuation + OFFSET
    clouds, normals = [], []
    for points, normal in zip(simulated.points(real), simulated.normals(real), strict=True):
        chosen = random.choice(len(points), 500, replace=False)
        cloud = points[chosen] + random.normal(0.0, 0.2, (500, 3))
        cloud[:outliers] += random.uniform(-15.0, 15.0, (outliers, 3))
        clouds.append(0.001 * cloud)
        normals.append(normal[chosen])
    found = fit_actuation(simulated, Frames(actuation, clouds, normals))
    np.testing.assert_allclose(found.gain, GAIN, atol=0.015)
    np.testing.assert_allclose(found.offset, OFFSET, atol=45.0)


def test_a_transfer_carries_its_correction_into_the_pipeline(random_sim_to_real: Callable[..., SimToReal]) -> None:
    warp = random_sim_to_real(1)
    network = extract_mlp(load_forward_kinematics(load_robot("membrane"))[0])
    corrected = replace(warp, actuation=ActuationCorrection(GAIN, OFFSET))
    uv, actuation = SHEET.samples(100), np.full((1, 9), 2000.0)
    expected = ForwardPipeline(network, uv, warp, SHEET).points(GAIN * actuation + OFFSET)
    np.testing.assert_allclose(ForwardPipeline(network, uv, corrected, SHEET).points(actuation), expected, atol=1e-4)
