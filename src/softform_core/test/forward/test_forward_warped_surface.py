"""N_s2r behind the simulation: a forward model as any, with the derivatives of its points, and near N_fk's."""

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward.conformance import CHECKS
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.robot_models import ModelRequest, open_models, open_surface_models
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.forward.warped_surface import WarpedSurface
from softform_core.networks.model_files import ModelError
from softform_core.paths import models_of
from softform_core.robots import load_robot

pytestmark = pytest.mark.slow

ROBOT = load_robot("membrane")
LEARNED = str(models_of("membrane") / "rig_default")
POINTS = 60
PRESSURES = np.array([2100.0, 900.0, 3000.0, 1500.0, 2600.0, 700.0, 1200.0, 3300.0, 1800.0])


@pytest.fixture(scope="module")
def models():
    return open_surface_models("fem", ModelRequest(ROBOT, POINTS, sim_to_real=LEARNED))


def test_it_is_where_the_learned_model_is_but_for_what_n_fk_misses(models):
    assert isinstance(models.current, WarpedSurface) and isinstance(models.simulated, SimulatedSurface)
    learned = LivePipeline(ROBOT, POINTS, sim_to_real=LEARNED)
    apart = np.linalg.norm(models.current.points(PRESSURES) - learned.current.points(PRESSURES), axis=1)
    by_simulation = np.linalg.norm(models.simulated.points(PRESSURES) - learned.current.points(PRESSURES), axis=1)
    assert apart.mean() < 0.2 < 1.0 < by_simulation.mean()
    assert np.abs(models.current.normals(PRESSURES) - learned.current.normals(PRESSURES)).max() < 0.05
    assert models.mean_error_mm(models.current) == learned.models.card.errors_mm.after_mean
    sigma, known = (one.models.uncertainty.along_normals(PRESSURES) for one in (models, learned))
    np.testing.assert_allclose(sigma, known, rtol=0.2)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_is_a_forward_model(models, check):
    check(models.current.at(models.current.uv[::6]), ROBOT.actuation_min, ROBOT.actuation_max)


def test_a_model_that_is_learned_anew_is_taken_into_use(tmp_path, save_random_model):
    save_random_model(tmp_path, seed=0)
    models = open_surface_models("fem", ModelRequest(ROBOT, POINTS, sim_to_real=str(tmp_path)))
    before = models.current.points(PRESSURES)
    card = save_random_model(tmp_path, seed=50)
    assert card.weights_sha256[:12] in models.refresh() and models.description()["model"] == "fem"
    assert np.abs(models.current.points(PRESSURES) - before).max() > 1.0
    assert models.refresh() is None


def test_without_a_folder_nothing_is_corrected_and_a_wrong_one_is_told():
    plain = open_surface_models("fem", ModelRequest(ROBOT, POINTS))
    assert plain.current is plain.simulated and plain.description()["sim-to-real"] == "none"
    with pytest.raises(ModelError, match="nowhere"):
        open_surface_models("fem", ModelRequest(ROBOT, POINTS, sim_to_real="nowhere"))
    with pytest.raises(SoftformError, match="corrects the learned model"):
        open_models("fem", ModelRequest(load_robot("tendon_rod"), POINTS, sim_to_real=LEARNED))
