"""Studies: every one can be drawn, finished trainings are kept, a repeated call trains nothing."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib import image

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.kept import Ledger
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.stores.past import pasts
from softform_core.surface.patch_set import PatchSet
from softform_core.training.learn_forward_kinematics import recipe_for
from softform_rig.reality import load_reality
from softform_studies.cli_study import _NAMES
from softform_studies.sim_to_real.judge import JUDGED_POINTS, Judge
from softform_studies.sim_to_real.make_frames import TrueSurfaces
from softform_studies.studies import laboratory, layers
from softform_studies.studies.arm import chamfer_distances
from softform_studies.studies.catalogue import BEFORE, OURS, STUDIES, Scale, Setting
from softform_studies.studies.drawing import Row, draw
from softform_studies.studies.laboratory import Learned
from softform_studies.studies.mannequin import _draw, aligned
from softform_studies.studies.mould import LAYER, Sheet, look_at, raster
from softform_studies.studies.study import OTHERS, by_series, carry_out


def invented(place: int) -> dict:
    """A result of the right form."""
    counts = np.bincount(np.random.default_rng(place).poisson(5.0 + place, 900), minlength=160)[:160].tolist()
    figures = {"mean_mm": 0.2 + 0.1 * place, "max_mm": 1.0 + place, "missing": 0.05 * place, "warp_s": 0.01 * place}
    return {**figures, "judged": 1000, "distances": counts, "normal_errors": counts[:60]}


def test_the_command_names_every_study() -> None:
    assert set(_NAMES) == {*STUDIES, *OTHERS}


@pytest.mark.long
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_can_be_drawn(name: str) -> None:
    rows = [Row(run, invented(place)) for place, run in enumerate(STUDIES[name](Scale()))]
    drawn = io.BytesIO()
    draw(name, rows).savefig(drawn, format="png")
    drawn.seek(0)
    picture = image.imread(drawn, format="png")
    assert picture.shape[1] > 1000
    # Both panels show more than an empty frame.
    left, right = np.array_split(picture[..., :3], 2, axis=1)
    for half in (left, right):
        assert (half.std(axis=-1) > 0.1).sum() > 300


def test_runs_of_a_study_are_distinguished_by_their_settings() -> None:
    for name, study in STUDIES.items():
        settings = [json.dumps(run.settings(), sort_keys=True) for run in study(Scale())]
        assert len(set(settings)) == len(settings), name


def test_a_ledger_finds_what_was_kept_and_forgets_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    Ledger(path).keep({"frames": 40, "seed": 1}, {"mean_mm": 0.25})
    path.write_text(path.read_text() + '{"digest": "half', encoding="utf-8")
    again = Ledger(path)
    assert again.find({"seed": 1, "frames": 40}) == {"mean_mm": 0.25}
    assert again.find({"seed": 2, "frames": 40}) is None
    again.keep({"frames": 80, "seed": 1}, {"mean_mm": 0.2})
    last = Ledger(path)
    assert last.find({"frames": 80, "seed": 1}) == {"mean_mm": 0.2}
    assert last.find({"frames": 40, "seed": 1}) == {"mean_mm": 0.25}


def test_a_ledger_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SoftformError, match="--output"):
        Ledger(tmp_path / "file" / "runs.jsonl")


@pytest.mark.long
def test_a_study_stopped_between_trainings_goes_on_and_a_repeated_one_trains_nothing(
    tmp_path: Path, monkeypatch
) -> None:
    robot = load_robot("membrane")
    reality = load_reality("default", robot)
    measure = laboratory.Laboratory._measure
    measured: list[str] = []

    def counted(self, run):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(run.series)
        return measure(self, run)

    monkeypatch.setattr(laboratory.Laboratory, "_measure", counted)
    with pytest.raises(KeyboardInterrupt):
        carry_out("surrogate", robot, reality, Scale(is_quick=True), 100, tmp_path)
    assert measured == ["simulation only", "shapes from N_fk"]
    assert not (tmp_path / "surrogate.csv").exists()

    def last(self, run):
        assert run.method == "direct_simulation"
        return measure(self, run)

    monkeypatch.setattr(laboratory.Laboratory, "_measure", last)
    files = carry_out("surrogate", robot, reality, Scale(is_quick=True), 100, tmp_path)
    assert {path.name for path in files} == {"surrogate.csv", "surrogate.json", "surrogate.png"}
    table = list(csv.DictReader(io.StringIO((tmp_path / "surrogate.csv").read_text())))
    assert [row["series"] for row in table] == ["simulation only", "shapes from N_fk", "shapes from the simulator"]
    # The simulator's own shapes differ from N_fk's by the error of N_fk alone.
    from_network, from_simulator = (float(row["mean_mm"]) for row in table[1:])
    assert abs(from_network - from_simulator) < 0.2

    monkeypatch.delattr(laboratory.Laboratory, "_measure")
    figures = by_series(tmp_path / "surrogate.json")
    assert figures["shapes from N_fk"]["0"]["mean_mm"] == from_network and "distances" not in figures
    before = (tmp_path / "surrogate.csv").read_bytes()
    carry_out("surrogate", robot, reality, Scale(is_quick=True), 100, tmp_path)
    assert (tmp_path / "surrogate.csv").read_bytes() == before


@pytest.mark.long
def test_geometric_regularisation_is_studied_by_both_simulators_of_a_solid(tmp_path: Path, monkeypatch) -> None:
    """What each run learns from is real, its result invented; the second simulator's N_fk is trained once."""
    robot = load_robot("manipulator")
    setting = robot, load_reality("default", robot), Scale.of(robot, is_quick=True), 0, tmp_path
    bent: dict[str, float] = {}

    def perform(self, run):
        (shape,) = self.learners.forward_kinematics.forward(np.array([[60e3, 0.0, 0.0, 0.0, 0.0, 0.0]]))
        place = len(bent)
        bent[f"{place} {run.series}"] = float(shape.reshape(-1, 3)[:, 0].mean())
        return invented(place)

    # Principal components of 2700 coordinates would take most of the time.
    monkeypatch.setattr(laboratory, "recipe_of_kinematics", lambda robot: replace(recipe_for(robot), components=None))
    monkeypatch.setattr(laboratory.Laboratory, "perform", perform)
    carry_out("geometric", *setting)
    figures = by_series(tmp_path / "geometric.json")
    assert list(figures)[::5] == ["solid, simulation only", "solid_rod, simulation only"] and len(figures) == 10
    from_solid, from_rod = np.split(np.array(list(bent.values())), 2)
    assert np.ptp(from_solid) == np.ptp(from_rod) == 0.0 and from_solid[0] != from_rod[0]
    assert image.imread(tmp_path / "geometric.png").shape[0] > 1000  # a line of panels for each
    monkeypatch.delattr(laboratory, "learn_forward_kinematics")
    carry_out("geometric", *setting)


def test_a_mould_that_is_too_low_and_leans_leaves_a_gap_and_misaligns_layers() -> None:
    """A flat target; the true mould goes through a line 1 mm below its middle, and leans by 0.02 rad."""
    x, y = np.meshgrid([-0.1, 0.1], [-0.05, 0.05])
    faces = np.array([[0, 1, 2], [1, 3, 2]])
    flat = np.stack([x.ravel(), y.ravel(), np.zeros(4)], axis=1)
    path = raster(Shape.from_mesh(flat, faces), 0.01)
    assert np.allclose(path.axes, [0.0, 0.0, 1.0])
    lines = np.unique(path.places[:, 1].round(6))
    assert np.allclose(np.diff(lines), 0.01) and np.ptp(path.places[:, 0]) > 0.17
    assert np.linalg.norm(np.diff(path.places, axis=0), axis=1).max() < 0.0101  # there and back, never across
    leaning = flat + [0.0, 0.0, -0.001] + np.stack([0 * x, 0 * y, 0.02 * x], axis=-1).reshape(4, 3)
    gaps, misaligned = look_at(path, Sheet(leaning, faces))
    assert np.allclose(gaps, np.cos(np.arctan(0.02)) * (0.001 - 0.02 * path.places[:, 0]), atol=1e-6)
    assert np.allclose(misaligned, LAYER * np.sin(np.arctan(0.02)), atol=1e-7)


def test_sizes_of_the_network_are_trained_once(tmp_path: Path, monkeypatch) -> None:
    robot = load_robot("membrane")
    shapes = SimpleNamespace(actuation=np.zeros((40, 9)), control_points=np.zeros((40, 900, 3)), provenance={})
    trained = []

    def train(robot, shapes, recipe, seed, folder, progress):
        trained.append(recipe)
        errors = np.arange(1.0, 5.0)[:, None] / recipe.hidden[0]
        return SimpleNamespace(errors=errors, split=SimpleNamespace(test=np.array([0, 2])), seconds=1.0)

    monkeypatch.setattr(layers, "load_training_shapes", lambda robot, path: shapes)
    monkeypatch.setattr(layers, "train_forward_kinematics", train)
    setting = Setting(robot, load_reality("default", robot), Scale(), 0, tmp_path, progress=False)
    first = layers.layers(setting)
    assert [len(recipe.hidden) for recipe in trained] == 2 * [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert {(recipe.name, recipe.epochs) for recipe in trained} == {("paper", 150), ("default", 150)}
    assert first.entries[5] == {
        "series": "as printed, 2 layers",
        "x": 64,
        "mean_mm": 0.0312,
        "max_mm": 0.047,
        "train_s": 1.0,
    }
    assert layers.layers(setting).entries == first.entries and len(trained) == 24


def test_surfaces_are_compared_as_the_paper_compares_arms_and_mannequins() -> None:
    """A surface against itself, lifted and turned: Chamfer distances of surfaces, and distances after ICP."""
    robot = load_robot("membrane")
    weights = extract_mlp(load_forward_kinematics(robot)[0])
    actuation = np.stack([robot.actuation_min, 0.5 * robot.actuation_max])
    points = ForwardPipeline(weights, robot.patches.samples(JUDGED_POINTS), None, robot.patches).points(actuation)
    faces, past = robot.patches.triangles(JUDGED_POINTS), pasts(actuation, robot.rest_actuation)
    judge = Judge(robot, weights, TrueSurfaces(actuation, points / 1000.0, faces, past))
    lifted = points + [0.0, 0.0, 2.0]
    learned = Learned(judge, points, lifted, SimpleNamespace())  # what was trained is not looked at
    assert chamfer_distances(learned, points) == pytest.approx(0.0, abs=1e-6)
    flat, inflated = chamfer_distances(learned, lifted)
    assert flat == pytest.approx(8.0, rel=0.01) and 0.0 < inflated < flat  # 2 mm forth and back, squared
    turned = RigidTransform().moved(np.array([0.02, -0.01, 0.01]), np.array([1.0, 0.5, 2.0]), np.zeros(3))
    moved, truth = turned.apply(points[1]), judge.truths[1]
    assert truth.query(moved).distances.mean() > 1.0
    assert truth.query(aligned(moved, truth)).distances.mean() < 0.05


def test_an_unknown_study_is_rejected_with_the_names() -> None:
    result = CliRunner().invoke(main, ["study", "colours"])
    assert result.exit_code == 2
    assert "surrogate" in result.output


def test_all_says_at_once_that_shapes_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTFORM_DATA", str(tmp_path / "data"))
    result = CliRunner().invoke(main, ["study", "all", "--quick", "--output", str(tmp_path / "out")])
    assert result.exit_code == 2 and "softform simulate" in result.output
    assert not list((tmp_path / "out").glob("*.json"))


@pytest.mark.parametrize(("after", "bars"), [(1.0, 1), (0.2, 2)])
def test_errors_of_the_mannequin_that_would_be_black_have_their_own_scale(after: float, bars: int) -> None:
    points = PatchSet.of(periodic=True).samples(64) @ np.array([[50.0, 20.0, 0.0], [0.0, 10.0, 300.0]])
    distances = np.linspace(0.0, 2.0, len(points))
    shown = {(series, 1): (points, mm * distances) for series, mm in ((BEFORE, 1.0), (OURS, after))}
    figure = _draw(shown, PatchSet.of(periodic=True).triangles(len(points)))
    assert len(figure.axes) == 3 + bars
