"""An evaluation from end to end on captures made by the shipped model itself, so that all errors are known."""

import json
import re
import shutil

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from softform_core.cli.evaluate import evaluate as command
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.evaluation.evaluate import evaluate
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.robot_pipeline import pipeline_of
from softform_core.frames.marker_quality import MarkerQuality
from softform_core.frames.marker_store import create_marker_frames
from softform_core.frames.quality import assess_cloud
from softform_core.frames.store import create_frames
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_dir
from softform_core.registration.markers import register_markers
from softform_core.robots import load_robot
from softform_core.surface.patch_set import SHEET

pytestmark = pytest.mark.slow

NOISE_MM = 0.1
ROBOT = load_robot("membrane")
MODEL = str(models_dir() / "membrane" / "rig_default")


@pytest.fixture(scope="module")
def models():
    return LivePipeline(ROBOT, 6400, None, MODEL)


@pytest.fixture(scope="module")
def store(models, tmp_path_factory):
    """Frames 0 to 3 as the model's card knows them, with noise and a hole: 1 has lost its points, 2 was rejected."""
    path = tmp_path_factory.mktemp("evaluation") / "frames.zarr"
    origin = models.models.card.frames
    generator = np.random.default_rng(5)
    numbers = [*origin.used[:2], origin.held_out[0], origin.held_out[1]]
    actuations = generator.uniform(ROBOT.actuation_min, ROBOT.actuation_max, (max(numbers) + 1, 9))
    provenance = {name: getattr(origin, name) for name in ("seed", "source", "via", "git_revision", "created")}
    frames = create_frames(path, ROBOT, actuations, provenance)
    for number in numbers:
        points = models.current.points(actuations[number])
        points = points[np.linalg.norm(points[:, :2] - [60.0, -40.0], axis=1) > 40.0]
        points += generator.normal(scale=NOISE_MM, size=points.shape)
        quality = assess_cloud(points / 1000.0, ROBOT)
        assert not quality.fault
        frames.write_captured(number, points / 1000.0, actuations[number], 1.0, quality)
    return path, numbers


def damaged(store, tmp_path, number):
    """A copy of the store in which frame `number` holds a NaN."""
    copy = tmp_path / "damaged.zarr"
    shutil.copytree(store, copy)
    group = zarr.open_group(copy, mode="r+")
    first, _ = group["offsets"][number]
    group["points"][int(first) + 5] = np.nan
    return copy


@pytest.mark.long
def test_the_command_writes_a_report_whose_figures_are_those_of_the_captures(models, store, tmp_path):
    path, (trained, broken, held_out, other) = store
    copy = damaged(path, tmp_path, broken)
    arguments = [
        "--frames",
        str(copy),
        "--sim-to-real",
        MODEL,
        "--output",
        str(tmp_path / "out"),
        "--all",
        "--device",
        "cpu",
        "--json",
        "-",
    ]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures == json.loads((tmp_path / "out" / "metrics.json").read_text())

    # Captures are the model's own surface and noise: what is left is the mean of a half-normal distribution.
    after, before = figures["overall"]["after"], figures["overall"]["before"]
    assert after["mean_mm"] == pytest.approx(NOISE_MM * np.sqrt(2.0 / np.pi), rel=0.15)
    assert after["noise_mm"] == pytest.approx(NOISE_MM, rel=0.2)
    assert after["normal_error"] < 0.001 and after["folded"] == 0
    pair = zip(
        *(p.points(open_actuations(copy)[[held_out, other]]) for p in (models.simulated, models.current)), strict=True
    )
    moved = np.concatenate([np.linalg.norm(b - a, axis=1) for a, b in pair])
    assert 0.5 * moved.mean() < before["mean_mm"] < moved.mean()  # closest points are nearer than own points
    assert figures["overall"]["mean_reduction"] == pytest.approx(1.0 - after["mean_mm"] / before["mean_mm"], abs=1e-3)
    assert after["within_two_sigma"] > 0.99  # sigma allows for errors that these captures do not have
    hole = np.pi * 40.0**2 / 320.0**2
    assert figures["overall"]["missing"] == pytest.approx(hole, abs=0.03)

    assert figures["frames_held_out"] == [held_out, other]
    assert figures["frames_trained_on"] == [trained]
    assert list(figures["frames_left_out"]) == [str(broken)]
    assert any(f"Frame {broken} is left out" in finding and "damaged" in finding for finding in figures["findings"])
    assert [row["frame"] for row in figures["per_frame"]] == sorted([trained, held_out, other])
    assert figures["trained_on"]["frames"] == 1
    assert figures["actuation_unit"] == "Pa"
    assert list(figures["per_frame"][0]["actuation"]) == ROBOT.actuation_names

    page = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)|url\(|<script|https?://""", page)
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == 4 and min(map(len, pictures)) > 10_000
    assert f"{before['mean_mm']:.2f} → {after['mean_mm']:.2f} mm" in page and f"Frame {broken} is left out" in page
    assert re.search(rf"<dt>frame {figures['worst_frame']}, the worst</dt><dd>c1 [\d.e+-]+, c2 .* Pa</dd>", page)
    document = (tmp_path / "out" / "report.pdf").read_bytes()
    assert document.startswith(b"%PDF") and len(re.findall(rb"/Type /Page\b", document)) == 6


def open_actuations(path):
    return np.asarray(zarr.open_group(path, mode="r")["actuation"])


def test_simulation_alone_has_no_after(store):
    path, numbers = store
    evaluation = evaluate(ROBOT, path, "none")
    assert [frame.number for frame in evaluation.judged] == sorted(numbers)  # nothing was trained on them
    assert all(frame.after is None for frame in evaluation.judged)
    assert evaluation.findings == []


def test_by_default_only_frames_that_the_model_has_not_seen_are_judged(store):
    path, (_, _, *held_out) = store
    evaluation = evaluate(ROBOT, path, MODEL)
    assert [frame.number for frame in evaluation.judged] == sorted(held_out)
    assert evaluation.others == []


def test_the_device_changes_nothing_but_rounding(store, tmp_path):
    path, _ = store
    by_default, by_torch = evaluate(ROBOT, path, MODEL).judged, evaluate(ROBOT, path, MODEL, device="cpu:0").judged
    for one, other in zip(by_default, by_torch, strict=True):
        for a, b in ((one.before, other.before), (one.after, other.after)):
            assert not np.array_equal(a.surface.points, b.surface.points)
            np.testing.assert_allclose(a.surface.points, b.surface.points, atol=1e-3)
            np.testing.assert_allclose(a.distances, b.distances, atol=2e-3)
        np.testing.assert_allclose(one.after.surface.sigma, other.after.surface.sigma, rtol=1e-3)


def test_a_device_that_is_not_there_is_named(store, tmp_path):
    path, _ = store
    options = ["--frames", str(path), "--sim-to-real", MODEL, "--output", str(tmp_path / "out"), "--device", "cuda:99"]
    result = CliRunner().invoke(main, ["evaluate", *options])
    assert result.exit_code == 2 and "PyTorch cannot compute on 'cuda:99'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_model_that_has_seen_every_frame_is_judged_only_on_demand(models, store, tmp_path):
    path, (trained, *_) = store
    copy = tmp_path / "seen.zarr"
    shutil.copytree(path, copy)
    status = zarr.open_group(copy, mode="r+")["status"]
    status[:] = np.where(np.arange(status.shape[0]) == trained, status[:], 0)
    with pytest.raises(SoftformError, match="was trained on each of the 1 frames .* --all"):
        evaluate(ROBOT, copy, MODEL)
    evaluation = evaluate(ROBOT, copy, MODEL, held_out_only=False)
    assert "trained on every judged frame" in evaluation.findings[0]


def test_unusable_recordings_are_rejected_with_the_next_step(store, tmp_path):
    path, _ = store
    with pytest.raises(SoftformError, match="softform collect"):
        evaluate(ROBOT, tmp_path / "none.zarr", "none")
    provenance = dict.fromkeys(("source", "via", "git_revision", "created"), "") | {"seed": 0}
    create_frames(tmp_path / "empty.zarr", ROBOT, np.zeros((2, 9)), provenance)
    with pytest.raises(SoftformError, match="no frame that can be compared .*softform collect"):
        evaluate(ROBOT, tmp_path / "empty.zarr", "none")
    other = ROBOT.model_copy(update={"name": "other"})
    create_frames(tmp_path / "other.zarr", other, np.zeros((2, 9)), provenance)
    with pytest.raises(SoftformError, match="for robot 'other'"):
        evaluate(ROBOT, tmp_path / "other.zarr", "none")
    with pytest.raises(SoftformError, match="train s2r"):
        evaluate(ROBOT, path, str(tmp_path))


def test_markers_are_judged_by_their_own_points(models, tmp_path):
    rest_uv = SHEET.samples(36) * 0.8 + 0.1
    provenance = {"seed": 1, "source": "rig", "via": "mocap", "git_revision": "", "created": "now"}
    actuations = np.random.default_rng(2).uniform(ROBOT.actuation_min, ROBOT.actuation_max, (2, 9))
    rest = np.column_stack([(rest_uv - 0.5) * ROBOT.extent, np.zeros(len(rest_uv))])
    uv = register_markers(rest, ROBOT)
    path = tmp_path / "markers.zarr"
    names = [f"m{place:02d}" for place in range(len(rest))]
    store = create_marker_frames(path, ROBOT, actuations, names, rest, provenance)
    weights = extract_mlp(load_forward_kinematics(ROBOT)[0])
    corrected = pipeline_of(ROBOT, weights, uv, models.current.sim_to_real)
    for number, actuation in enumerate(actuations):
        at = corrected.points(actuation)
        positions = at / 1000.0 + [0.0, 0.0, 0.002]
        positions[number * 3 : number * 3 + 4] = np.nan
        store.write_captured(number, positions, actuation, 1.0, MarkerQuality(32 / 36, ""))
    evaluation = evaluate(ROBOT, path, MODEL)
    assert "has drifted" in evaluation.findings[0] and "softform refresh" in evaluation.findings[0]
    for frame in evaluation.judged:
        assert frame.after is not None
        assert len(frame.after.distances) == 32
        assert frame.missing == pytest.approx(4 / 36)
        assert frame.after.distances == pytest.approx(2.0, abs=0.1)
