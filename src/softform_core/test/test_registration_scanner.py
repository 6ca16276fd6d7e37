"""Where a scanner stands: found by scans of the resting robot, told by what is known beside them, kept and given."""

import json
import re
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

from softform_core.cli.import_ import frames
from softform_core.cli.register import register
from softform_core.errors import SoftformError
from softform_core.evaluation import pictures
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.store import open_frames
from softform_core.geometry.rigid import RigidTransform
from softform_core.registration.scan_alignment import Reference, Scan, placements
from softform_core.registration.scanner_pose import NotRegisteredError, kept_registration, scanner_place
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_core.units import MM_PER_M

ROBOT = load_robot("membrane")
POSE = RigidTransform(
    Rotation.from_euler("xyz", [200.0, 25.0, 130.0], degrees=True).as_matrix(), np.array([0.1, -0.2, 0.5])
)
BUMP = np.array([2000.0, *[0.0] * 8])
SHAPE = np.array([1000.0, 4000.0, 500.0, 2000.0, 3000.0, 200.0, 4500.0, 1500.0, 2500.0])
NOISE, STRAY = 2e-4, 0.005


@cache
def seen(actuation=(0.0,) * 9, name="membrane", count=2000, share=1.0):
    """Points m on the robot under an actuation, with noise and stray points, but for a hole, in its frame."""
    robot = load_robot(name)
    draw = np.random.default_rng(round(sum(actuation)))
    side = 65 * 65
    points = load_pipeline(robot, side).points(np.array(actuation)) / MM_PER_M
    points = Shape.from_mesh(points, robot.patches.triangles(side)).sample(count).points
    points = points + NOISE * draw.standard_normal(points.shape)
    stray = draw.random(count) < STRAY
    points[stray] += draw.uniform(-0.03, 0.03, (stray.sum(), 3))
    extent = np.ptp(points, axis=0)
    hole = np.linalg.norm(points - points[7], axis=1) < 0.12 * extent.max()
    within = points[:, 0] - points[:, 0].min() <= share * extent[0]
    return points[~hole & within]


def plate(low, high, count):
    return np.random.default_rng(count).uniform(low, high, (count, 3))


FRAME = np.concatenate(
    [
        plate([-0.2, -0.22, -0.004], [0.2, -0.18, -0.004], 510),
        plate([-0.2, 0.18, -0.004], [0.2, 0.22, -0.004], 520),
        plate([0.17, -0.2, 0.04], [0.2, 0.1, 0.04], 300),
        plate([0.17, -0.2, 0.0], [0.17, 0.1, 0.04], 310),
    ]
)
"""Two bars and a block beside the membrane."""


def off_mm(motion, pose=POSE):
    """How far a motion brings the robot's surface from where it is, at most, mm."""
    places = Reference.at_rest(ROBOT).points
    return MM_PER_M * np.linalg.norm(motion.apply(pose.apply_inverse(places)) - places, axis=1).max()


@pytest.fixture(autouse=True)
def no_pictures(request, monkeypatch):
    if "data" not in request.fixturenames:
        monkeypatch.setattr(pictures, "draw_registration", lambda *_: None)


@pytest.fixture(autouse=True)
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTFORM_DATA", str(tmp_path / "data"))


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def files(tmp_path):
    def write(name, points, unit="mm", pose=POSE):
        write_ply(tmp_path / name, Shape(pose.apply_inverse(points)), unit)
        return str(tmp_path / name)

    return write


def registered(*arguments):
    return CliRunner().invoke(register, arguments)


@pytest.mark.long
def test_equal_sides_are_all_told_and_nothing_is_kept_before_one_is_chosen(files, data):
    rest = files("rest.ply", seen())
    result = registered(rest, "--unit", "mm")
    assert isinstance(result.exception, SoftformError) and "which of 8 placements" in result.exception.message
    assert "--choose" in result.exception.next_step
    assert (data / "membrane/scanners/default.png").exists() and not kept_registration("membrane", "default").exists()
    listed = [line for line in result.output.splitlines() if "origin of the scans" in line]
    assert len(listed) == 8
    # Those from which the origin sees the front come first, and where the scanner stands is among them.
    (number,) = [i for i, line in enumerate(listed, 1) if re.search("x (99|100|101), y -(199|200|201), z 500 mm", line)]
    assert number <= 4
    result = registered(rest, "--unit", "mm", "--choose", str(number))
    assert result.exception is None, result.output
    assert off_mm(scanner_place("default", ROBOT).pose) < 1.0
    assert "Choose one that is listed" in str(registered(rest, "--unit", "mm", "--choose", "9").exception)


def at(*names, off=0.0):
    """Options that tell where base markers are seen."""
    places = MM_PER_M * POSE.apply_inverse(np.array([ROBOT.base_markers[name] for name in names])) + off
    return [
        word
        for name, place in zip(names, places, strict=True)
        for word in ("--at", f"{name}={','.join(map(str, place))}")
    ]


def test_places_that_are_seen_tell_equal_sides_apart(files):
    rest = files("rest.ply", seen())
    result = registered(rest, "--unit", "mm", *at("base_1", "base_4", off=1.5))
    assert result.exception is None, result.exception
    assert off_mm(scanner_place("default", ROBOT).pose) < 1.0  # the marker was picked less well
    result = registered(rest, "--unit", "mm", *at("base_1", off=80.0))
    assert "m off" in str(result.exception)
    for wrong in ("base_9=1,2,3", "base_1=1,2", "base_1", "base_1=a,b,c", "base_1=nan,2,3", "0,0,inf=1,2,3"):
        assert "--at" in str(registered(rest, "--unit", "mm", "--at", wrong).exception)


@pytest.mark.long
def test_a_scan_that_shows_more_than_the_robot_needs_three_places(files):
    rest = files("rest.ply", np.concatenate([seen(), FRAME]))
    result = registered(rest, "--unit", "mm")
    assert "--at" in str(result.exception) or "cut" in str(result.exception).lower()
    result = registered(rest, "--unit", "mm", *at("base_1", "base_2", "base_4", off=2.0))
    assert result.exception is None, result.exception
    assert off_mm(scanner_place("default", ROBOT).pose) < 1.5


def test_places_that_are_mixed_up_are_said(files):
    rest = files("rest.ply", seen())
    wrong = at("base_1", "base_2", "base_4")
    wrong[1], wrong[3] = wrong[1].replace("base_1", "base_2"), wrong[3].replace("base_2", "base_1")
    result = registered(rest, "--unit", "mm", *wrong)
    assert "off their places" in str(result.exception) and "Check --at" in str(result.exception)


def test_hand_held_scans_are_aligned_by_what_stands_still(files):
    rest = files("rest.ply", np.concatenate([seen(), FRAME]))
    result = registered(rest, "--unit", "mm", "--hand-held", *at("base_1", "base_2", "base_4"))
    assert result.exception is None and "places around the robot" in result.output, result.exception
    place = scanner_place("default", ROBOT)
    assert place.pose is None and len(place.still) > 200
    # The true robot is softer than the simulated one.
    for number, actuation in enumerate((SHAPE, BUMP, 0.0 * BUMP)):
        other = RigidTransform(Rotation.random(random_state=number).as_matrix(), np.array([0.3, 0.1, -0.4]))
        robot, around = seen(tuple(1.1 * actuation)), FRAME[number::3]
        placed = place.placed(other.apply_inverse(np.concatenate([robot, around])), actuation)
        assert len(robot) - 30 < len(placed) < len(robot) + 30, "what stands still is left out"
        assert MM_PER_M * np.linalg.norm(placed[: len(robot) - 60] - robot[: len(robot) - 60], axis=1).max() < 1.5


@pytest.mark.long
def test_hand_held_scans_of_the_robot_alone_are_aligned_by_its_rim(files):
    result = registered(files("rest.ply", seen()), "--unit", "mm", "--hand-held")
    assert result.exception is None and "Nothing around the robot" in result.output, result.exception
    place, robot = scanner_place("default", ROBOT), seen(tuple(1.1 * SHAPE))
    scan = POSE.apply_inverse(robot)
    assert MM_PER_M * np.linalg.norm(place.placed(scan, SHAPE) - robot, axis=1).max() < 2.0
    with pytest.raises(SoftformError, match="which of 8 ways it is turned"):
        place.placed(POSE.apply_inverse(seen()), 0.0 * SHAPE)
    with pytest.raises(SoftformError, match="millimetres"):
        place.placed(MM_PER_M * scan, SHAPE)


def test_a_turn_that_a_round_arm_does_not_tell_is_said():
    arm = load_robot("manipulator")
    best, *others = placements(Scan(POSE.apply_inverse(seen((0.0,) * 6, "manipulator"))), Reference.at_rest(arm))
    assert best.left_open == "the turn about the direction (0.00, 0.00, 1.00)" and others


def test_half_of_the_robot_is_enough_and_less_is_said(files):
    arguments = "--unit", "mm", "--choose", "1"
    assert registered(files("most.ply", seen(share=0.75)), *arguments).exception is None
    assert "shows" in str(registered(files("part.ply", seen(share=0.3)), *arguments).exception)


@pytest.mark.long
def test_what_is_no_scan_of_the_robot_is_said(files):
    rest = files("rest.ply", seen(), unit="m")
    assert "mm" in str(registered(rest, "--unit", "mm").exception)
    assert "--unit" in registered(rest).output
    assert "does not exist" in str(registered("nowhere.ply", "--unit", "mm").exception)
    ball = np.random.default_rng(0).standard_normal((3000, 3))
    ball *= 0.15 / np.linalg.norm(ball, axis=1, keepdims=True)
    assert "does not have the robot's shape" in str(registered(files("ball.ply", ball), "--unit", "mm").exception)


@pytest.mark.long
@pytest.mark.parametrize(
    ("pressure", "apart", "is_doubted"),
    [(0.0, [0.0, 0.0, 0.0], False), (500.0, [0.0, 0.0, 0.0], True)]
    + [(0.0, [0.0, 0.0, 0.006], True), (0.0, [0.0, 0.06, 0.0], True)],
    ids=["at rest", "inflated", "halves in two planes", "halves beside each other"],
)
def test_a_scan_that_is_not_of_the_robot_at_rest_or_not_joined_is_doubted(pressure, apart, is_doubted, files):
    points = seen((pressure,) * 9).copy()
    points[points[:, 0] < 0.0] += apart
    result = registered(files("rest.ply", points), "--unit", "mm", "--choose", "1")
    assert ("WARNING: scans of a robot at rest usually fit to 1.0 mm" in result.output) == is_doubted, result.output


@pytest.mark.parametrize("name", ["my scanner", "../bench", "bench.yaml", ""])
def test_a_name_that_launch_would_not_find_again_is_refused(name, files, data):
    result = registered(files("rest.ply", seen()), "--unit", "mm", "--choose", "1", "--name", name)
    assert "is no name of a scanner" in str(result.exception) and not data.exists()


MATRIX = np.eye(4)
MATRIX[:3, :3], MATRIX[:3, 3] = POSE.rotation, POSE.translation
SEVEN = [*POSE.translation, *POSE.quaternion()]


@pytest.mark.parametrize(
    "given",
    [
        " ".join(map(str, SEVEN)),
        json.dumps(SEVEN),
        json.dumps(MATRIX.tolist()),
        "\n".join(" ".join(f"{value:.7f}" for value in row) for row in MATRIX),
        "; ".join(",".join(map(str, row)) for row in MATRIX),
    ],
    ids=["seven words", "seven in brackets", "rows in brackets", "rows", "rows with semicolons"],
)
def test_a_pose_or_matrix_is_taken_inline_or_from_a_file(given, tmp_path):
    for name, text in (
        ("pose.txt", given),
        ("pose.json", json.dumps({"name": "table", "matrix": MATRIX.tolist()})),
        ("pose.yaml", f"/**:\n  ros__parameters:\n    registration: {json.dumps(SEVEN)}\n"),
    ):
        (tmp_path / name).write_text(text)
        assert off_mm(scanner_place(str(tmp_path / name), ROBOT).pose) < 1e-3
    assert off_mm(scanner_place(given, ROBOT).pose) < 1e-3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[0, 0, 1]", "not seven or sixteen finite numbers but 3"),
        ("0 0 0 0 0 0 nan", "not seven or sixteen"),
        (json.dumps(MATRIX.T.tolist()), "last row is not 0, 0, 0, 1"),
        (json.dumps((np.diag([1e-3, 1e-3, 1e-3, 1.0]) @ MATRIX).tolist()), "stretches or mirrors"),
        (json.dumps((np.diag([1.0, 1.0, -1.0, 1.0]) @ MATRIX).tolist()), "stretches or mirrors"),
        (json.dumps([*(MM_PER_M * POSE.translation), *POSE.quaternion()]), "not millimetres"),
        ("x = 1", "no number"),
        ("/nowhere/pose.txt", "cannot be read"),
        ("/nowhere/pose.yaml", "cannot be read"),
        ("[[1, 0], [0, 1, 0]]", "but 5"),
    ],
)
def test_what_is_no_pose_is_said(given, said):
    with pytest.raises(SoftformError, match="(?s).") as caught:
        scanner_place(given, ROBOT)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "content", ["a: [1]\nb: [2]\n", "matrix: [[1, 0], [0]]\n", "hand_held: true\n", "pose: text\n"]
)
def test_a_file_that_holds_no_pose_is_said(content, tmp_path):
    (tmp_path / "pose.yaml").write_text(content)
    with pytest.raises(SoftformError) as caught:
        scanner_place(str(tmp_path / "pose.yaml"), ROBOT)
    assert caught.value.next_step


def test_a_scanner_that_is_not_registered_says_how(files):
    with pytest.raises(NotRegisteredError, match="softform register SCAN --robot membrane --unit mm --name bench"):
        scanner_place("bench", ROBOT)
    registered(files("rest.ply", seen()), "--unit", "mm", "--choose", "1")
    with pytest.raises(SoftformError, match="is of robot 'membrane'"):
        scanner_place(str(kept_registration("membrane", "default")), load_robot("mannequin"))


@pytest.mark.parametrize(("factor", "unit"), [(1000.0, "m"), (1.0, "mm")])
def test_a_scan_in_another_unit_is_called_a_scan(tmp_path, factor, unit):
    np.savetxt(tmp_path / "rest.xyz", factor * seen())  # says no unit
    told = str(registered(str(tmp_path / "rest.xyz"), "--unit", unit).exception)
    assert told.startswith("The scan is") and "target" not in told and "State the unit" in told


@pytest.mark.long
def test_frames_are_imported_in_the_frame_of_a_scanner_that_is_named(files, tmp_path):
    registered(files("rest.ply", seen()), "--unit", "mm", "--name", "bench", *at("base_1", "base_4"))
    registered(files("rest.ply", np.concatenate([seen(), FRAME])), "--unit", "mm", "--name", "hand", "--hand-held",
        *at("base_1", "base_2", "base_4"))  # fmt: skip
    shapes = SHAPE, BUMP
    table = "scan," + ",".join(ROBOT.actuation_names)
    for name in ("bench", "hand"):
        rows = [table]
        for number, shape in enumerate(shapes):
            turn = Rotation.random(random_state=number).as_matrix()
            pose = POSE if name == "bench" else RigidTransform(turn, np.array([0.3, 0.1, -0.4]))
            points = seen(tuple(shape))
            files(f"{name}{number}.ply", points if name == "bench" else np.concatenate([points, FRAME]), pose=pose)
            rows.append(f"{name}{number}.ply," + ",".join(map(str, shape / 1000.0)))
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
        arguments = [str(tmp_path / f"{name}.csv"), "--unit", "mm", "--actuation-unit", "kPa", "--robot", "membrane"]
        result = CliRunner().invoke(frames, [*arguments, "--scanner", name, "--output", str(tmp_path / f"{name}.zarr")])
        assert result.exception is None, result.exception
        store = open_frames(tmp_path / f"{name}.zarr", ROBOT)
        assert store.attributes["scanner"] == name and not store.rejections
        for number, shape in enumerate(shapes):
            reference = Reference.under(ROBOT, shape)
            points = np.asarray(store.points(number), dtype=float)
            assert MM_PER_M * np.median(np.abs(reference.gaps(points, reference.tree.query(points)[1]))) < 0.5
    result = CliRunner().invoke(frames, [*arguments, "--output", str(tmp_path / "none.zarr")])
    assert "--scanner" in str(result.exception)
