"""A sim-to-real model that is trained anew while it is in use."""

import os
import threading

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward import live_pipeline
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, load_sim_to_real
from softform_core.robots import load_robot

pytestmark = pytest.mark.slow

PRESSURES = np.linspace(500.0, 4500.0, 9)
POINTS = 100


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


@pytest.fixture
def model(tmp_path, save_random_model):
    save_random_model(tmp_path, seed=0)
    return tmp_path


@pytest.fixture
def own_models(robot, tmp_path, monkeypatch):
    """The robot's own folder in `models/`, with its N_fk and no sim-to-real model."""
    folder = tmp_path / "models" / robot.name
    folder.mkdir(parents=True)
    for file in live_pipeline.models_of(robot.name).iterdir():
        if file.is_file() and not file.name.startswith("sim_to_real"):
            (folder / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(live_pipeline, "models_of", lambda robot: tmp_path / "models" / robot)
    return folder


def test_the_model_corrects_the_simulation_and_says_how_sure_it_is(robot, model):
    live = LivePipeline(robot, POINTS, sim_to_real=str(model))
    assert np.abs(live.current.points(PRESSURES) - live.simulated.points(PRESSURES)).max() > 1.0
    sigma = live.models.uncertainty.along_normals(PRESSURES)
    assert sigma.shape == (POINTS,) and sigma.min() >= load_sim_to_real(robot, model).spread_floor_mm
    assert live.description()["sim-to-real"] == model.name
    assert live.refresh() is None


def test_none_leaves_the_simulation_alone(robot, model):
    live = LivePipeline(robot, POINTS, sim_to_real="none")
    assert live.current is live.simulated and live.models.uncertainty is None
    assert live.description() == {"sim-to-real": "none"} and live.refresh() is None


def test_a_new_model_is_taken_into_use_and_what_is_under_way_keeps_the_old(robot, model, save_random_model):
    live = LivePipeline(robot, POINTS, sim_to_real=str(model))
    held, before = live.models, live.current.points(PRESSURES)
    card = save_random_model(model, seed=50)
    assert card.weights_sha256[:12] in live.refresh()
    assert live.models.card == card
    assert np.abs(live.current.points(PRESSURES) - before).max() > 1.0
    assert np.array_equal(held.pipeline.points(PRESSURES), before)
    assert live.refresh() is None


def test_auto_takes_the_robots_own_model_when_there_is_one(robot, own_models, save_random_model):
    live = LivePipeline(robot, POINTS)
    assert live.current is live.simulated and live.refresh() is None
    save_random_model(own_models, seed=0)
    assert "instead of the simulation alone" in live.refresh()
    assert live.current is not live.simulated


def test_auto_says_why_the_robots_own_model_is_not_used(robot, own_models, save_random_model):
    save_random_model(own_models, seed=0, fk="another")
    live = LivePipeline(robot, POINTS)
    assert live.current is live.simulated and "another N_fk" in live.fault
    assert "another N_fk" in live.refresh()
    assert live.refresh() is None


def test_a_folder_without_a_usable_model_is_rejected(robot, tmp_path, model):
    with pytest.raises(SoftformError, match="no sim-to-real model"):
        LivePipeline(robot, POINTS, sim_to_real=str(tmp_path / "nothing"))
    (model / SIM_TO_REAL.weights_file).write_bytes(b"half")
    with pytest.raises(SoftformError, match="corrupt"):
        LivePipeline(robot, POINTS, sim_to_real=str(model))


@pytest.mark.parametrize("file", [SIM_TO_REAL.card_file, SIM_TO_REAL.weights_file])
def test_a_broken_model_is_reported_once_and_the_old_one_stays(robot, model, save_random_model, file):
    live = LivePipeline(robot, POINTS, sim_to_real=str(model))
    before = live.models
    path = model / file
    whole = path.read_bytes()
    for end in (500, 900):  # a copy under way: it grows between two looks, which is no news
        path.write_bytes(whole[:end])
        assert live.refresh() is None
    line = live.refresh()
    assert "rejected" in line and "stays in use" in line and live.fault
    assert live.refresh() is None
    assert live.models is before
    save_random_model(model, seed=9)
    assert "is in use" in live.refresh()
    assert not live.fault


def test_a_model_that_is_deleted_stays_in_use(robot, model):
    live = LivePipeline(robot, POINTS, sim_to_real=str(model))
    before = live.models
    for file in (SIM_TO_REAL.card_file, SIM_TO_REAL.weights_file):
        os.remove(model / file)
    assert live.refresh() is None
    assert "There is no sim-to-real model" in live.refresh()
    assert live.models is before


def test_solving_while_models_are_swapped_never_mixes_them(robot, tmp_path, save_random_model):
    folders = [tmp_path / "a", tmp_path / "b"]
    for seed, folder in enumerate(folders):
        save_random_model(folder, seed=seed)
    expected = [LivePipeline(robot, POINTS, sim_to_real=str(folder)).current.points(PRESSURES) for folder in folders]
    live = LivePipeline(robot, POINTS, sim_to_real=str(folders[0]))
    stop, wrong = threading.Event(), []

    def predict() -> None:
        while not stop.is_set():
            points = live.current.points(PRESSURES)
            if not any(np.array_equal(points, one) for one in expected):
                wrong.append(points)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    swaps = 0
    for turn in range(6):
        save_random_model(folders[0], seed=(turn + 1) % 2)
        swaps += live.refresh() is not None
    stop.set()
    for thread in threads:
        thread.join()
    assert swaps == 6 and not wrong
