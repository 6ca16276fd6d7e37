"""Drawn pictures of the sheet and a red marker, with perspective, blur and noise: where the marker is found."""

import re
import time

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_msgs.msg import Image

from softform_capture.camera_tracker.code_sheet import RULER_LENGTH, SHEETS, CodeCorners, CodeDetector
from softform_capture.camera_tracker.colour_marker import ColourMarker
from softform_capture.camera_tracker.image_source import CapturedImages, bgr_from_image
from softform_capture.camera_tracker.plane_view import Lens, SheetPlacement, view_plane
from softform_capture.camera_tracker.tracker import CameraTracker
from softform_capture.cli_print_code import print_code
from softform_core.errors import SoftformError

pytestmark = pytest.mark.slow

SHEET = SHEETS["A4"]
RED, GREEN, DIAMETER = (30, 30, 200), (40, 180, 30), 0.012
EYE = [0.05, -0.2, 0.75]
WORKSPACE_WIDTH = 0.556  # m, of the planar fingers


@pytest.fixture(scope="module")
def camera(sheet_camera):
    return sheet_camera(EYE)


def make_tracker(**options):
    return CameraTracker(CodeDetector(SHEET), **options)


def red_disc(x, y, height=0.0, diameter=DIAMETER):
    return np.array([x, y, height]), diameter, RED


def test_the_marker_is_found_to_a_fraction_of_a_millimetre_all_over_the_workspace(camera):
    random, tracker = np.random.default_rng(0), make_tracker()
    errors, seconds = [], []
    for seed in range(8):
        place = random.uniform([-0.26, -0.15], [0.26, 0.15])
        picture = camera.picture(SHEET, [red_disc(*place)], seed=seed)
        begun = time.process_time()
        sighting = tracker.look(picture, time=float(seed))
        seconds.append(time.process_time() - begun)
        assert sighting.problem == ""
        assert sighting.position[2] == 0.0
        errors.append(1000.0 * np.linalg.norm(sighting.position[:2] - place))
    print(  # noqa: T201 - cited in the docs
        f"camera tracker: mean {np.mean(errors):.2f} mm, max {np.max(errors):.2f} mm, "
        f"{1000.0 * np.median(seconds):.0f} ms of a core an image"
    )
    # Paper 001 leads the marker to 0.9 % of the workspace's width: what measures it must be far better.
    assert np.mean(errors) < 0.4
    assert np.max(errors) < 0.0018 * 1000.0 * WORKSPACE_WIDTH
    assert np.median(seconds) < 0.1  # 10 Hz


def test_the_sheet_may_lie_anywhere_and_the_marker_above_it(camera):
    place, height = np.array([0.08, 0.06]), 0.03
    picture = camera.picture(SHEET, [red_disc(*place, height)])
    lens = Lens(camera.matrix, np.zeros(5))
    placement = SheetPlacement(0.2, -0.1, np.pi / 2.0, height)
    sighting = make_tracker(placement=placement, lens=lens).look(picture, 0.0)
    assert sighting.position == pytest.approx([0.2 - place[1], -0.1 + place[0], 0.0], abs=1e-3)
    without = make_tracker().look(picture, 0.0)
    assert np.linalg.norm(without.position[:2] - place) > 0.005  # the parallax that the lens corrects


def test_a_lens_that_distorts_is_corrected_and_without_its_calibration_rejected(camera):
    lens = Lens(camera.matrix, np.array([-0.35, 0.1, 0.0, 0.0, 0.0]))
    corners = SHEET.corners().reshape(-1, 3)
    straight = camera.project(corners)
    rays = np.column_stack([straight, np.ones(len(straight))]) @ np.linalg.inv(camera.matrix).T
    bent = cv2.projectPoints(rays, np.zeros(3), np.zeros(3), lens.matrix, lens.distortion)[0][:, 0]
    view = view_plane(CodeCorners(bent, corners), SheetPlacement(), lens)
    assert view.place(bent) == pytest.approx(corners[:, :2], abs=1e-4)
    strong = bent + 0.02 * (bent - bent.mean(axis=0)) * np.linalg.norm(bent - bent.mean(axis=0), axis=1)[:, None] / 10
    with pytest.raises(SoftformError, match="off a flat sheet"):
        view_plane(CodeCorners(strong, corners), SheetPlacement(), None)


def test_a_sheet_printed_too_small_is_known_by_its_ruler():
    whole = SHEET.corners()
    assert np.allclose(SHEET.corners(0.97 * RULER_LENGTH), 0.97 * whole)
    assert np.ptp(whole[0, :, 0]) == pytest.approx(0.036)


@pytest.mark.parametrize(
    ("discs", "problem"),
    [
        ([], "Nothing in the image"),
        ([(np.zeros(3), DIAMETER, GREEN)], "Nothing in the image"),
        ([red_disc(0.1, 0.1), red_disc(-0.1, 0.1)], "2 things"),
        ([red_disc(0.1, 0.1, diameter=0.03)], "times its area"),
        ([red_disc(0.1, 0.1, diameter=0.008)], "times its area"),
        ([red_disc(0.1, 0.14), (np.array([0.106, 0.14, 0.0]), 0.011, GREEN)], "not round|times its area"),
    ],
)
def test_what_is_not_surely_the_marker_is_lost(camera, discs, problem):
    sighting = make_tracker().look(camera.picture(SHEET, discs), 0.0)
    assert sighting.is_lost
    assert np.isnan(sighting.position).all()
    assert re.search(problem, sighting.problem)


def test_other_things_of_the_colour_do_not_disturb(camera):
    discs = [red_disc(0.1, 0.14), red_disc(-0.2, 0.15, diameter=0.05), red_disc(0.2, -0.15, diameter=0.004)]
    sighting = make_tracker().look(camera.picture(SHEET, discs), 0.0)
    assert sighting.position[:2] == pytest.approx([0.1, 0.14], abs=1e-3)


def test_what_is_above_the_horizon_is_not_on_the_plane(sheet_camera):
    low = sheet_camera([0.0, -0.7, 0.25], target=[0.0, 0.0, 0.12])
    picture = low.picture(SHEET, [red_disc(0.05, 0.13, diameter=0.03)])
    horizon = low.project([[0.0, 1e6, 0.25]])[0, 1]
    assert 0.0 < horizon < low.project([[0.0, 0.2, 0.0]])[0, 1]
    cv2.ellipse(picture, (500, int(horizon - 90)), (15, 12), 0.0, 0.0, 360.0, RED, cv2.FILLED)
    tracker = make_tracker(marker=ColourMarker(diameter=0.03))
    assert tracker.look(picture, 0.0).position[:2] == pytest.approx([0.05, 0.13], abs=2e-3)
    places = tracker.view.place(np.array([[640.0, horizon - 1.0], [640.0, horizon + 1.0]]))
    assert np.isnan(places[0]).all()
    assert np.linalg.norm(places[1]) > 10.0


def test_a_picture_full_of_the_colour_is_lost_at_once(camera):
    tracker, picture = make_tracker(), camera.picture(SHEET)
    red = np.full_like(picture, RED)
    red[220:500, 440:840] = picture[220:500, 440:840]
    assert "many times its area" in tracker.look(red, 0.0).problem


def test_hidden_codes_are_remembered_for_a_while_and_a_moved_camera_is_noticed(camera, sheet_camera):
    tracker = make_tracker(hold_codes=5.0)
    bare = camera.picture(SHEET, [red_disc(0.05, 0.13)])
    hidden = bare.copy()
    hidden[230:480, 450:840] = 128  # the robot lies over the sheet
    assert tracker.look(hidden, 0.0).is_lost
    assert not tracker.look(bare, 1.0).is_lost
    held = tracker.look(hidden, 5.0)
    assert not held.is_lost
    assert "codes" in held.problem
    assert tracker.look(hidden, 6.5).is_lost
    moved = sheet_camera([0.0, 0.1, 0.9]).picture(SHEET, [red_disc(0.05, 0.13)])
    assert tracker.look(moved, 7.0).position[:2] == pytest.approx([0.05, 0.13], abs=1e-3)


def test_a_clock_that_was_set_back_does_not_make_an_old_view_count(camera):
    tracker = make_tracker(hold_codes=5.0)
    bare = camera.picture(SHEET, [red_disc(0.05, 0.13)])
    hidden = bare.copy()
    hidden[230:480, 450:840] = 128
    assert not tracker.look(bare, 3601.0).is_lost
    assert tracker.look(hidden, 2.0).is_lost
    assert not tracker.look(bare, 3.0).is_lost
    assert not tracker.look(hidden, 4.0).is_lost


@pytest.mark.parametrize(("exposure", "problem"), [(0.1, "too dark"), (6.0, "overexposed")])
def test_wrong_exposure_is_reported(camera, exposure, problem):
    sighting = make_tracker().look(camera.picture(SHEET, [red_disc(0.1, 0.1)], exposure=exposure), 0.0)
    assert sighting.is_lost
    assert problem in sighting.problem


@pytest.mark.parametrize("sheet", list(SHEETS))
def test_the_sheet_is_printed_in_the_size_of_the_paper(tmp_path, sheet):
    drawing = SHEETS[sheet].drawing()
    assert drawing.shape == tuple(10 * size for size in reversed(SHEETS[sheet].paper))
    small = cv2.resize(drawing, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    assert CodeDetector(SHEETS[sheet]).find(small).codes == SHEETS[sheet].columns * SHEETS[sheet].rows
    for name in ("sheet.png", "sheet.pdf"):
        result = CliRunner().invoke(print_code, ["--sheet", sheet, "--output", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
    assert np.array_equal(cv2.imread(str(tmp_path / "sheet.png"), cv2.IMREAD_GRAYSCALE), drawing)
    page = (tmp_path / "sheet.pdf").read_bytes()
    width, height = (float(n) for n in re.search(rb"MediaBox \[ 0 0 ([\d.]+) ([\d.]+)", page).groups())
    assert (width, height) == pytest.approx([size / 25.4 * 72.0 for size in SHEETS[sheet].paper], abs=0.1)


def test_a_sheet_of_another_type_is_rejected(tmp_path):
    result = CliRunner().invoke(print_code, ["--output", str(tmp_path / "sheet.svg")])
    assert isinstance(result.exception, SoftformError)


def image(encoding, channels, height=2, width=4, padding=0, data=None):
    step = width * channels + padding
    content = np.arange(height * step, dtype=np.uint8).tobytes() if data is None else data
    return Image(height=height, width=width, encoding=encoding, step=step, data=content)


def test_images_of_every_known_layout_are_read():
    bgr = bgr_from_image(image("bgr8", 3, padding=2))
    assert bgr.shape == (2, 4, 3)
    assert bgr[1, 0].tolist() == [14, 15, 16]
    assert np.array_equal(bgr_from_image(image("rgb8", 3, padding=2)), bgr[:, :, ::-1])
    assert bgr_from_image(image("rgba8", 4))[0, 1].tolist() == [6, 5, 4]
    assert bgr_from_image(image("yuv422_yuy2", 2)).shape == (2, 4, 3)


@settings(max_examples=100)
@given(
    st.sampled_from(["bgr8", "rgba8", "yuv422_yuy2", "mono16", ""]),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=64),
)
def test_an_image_message_of_any_kind_is_read_or_rejected(encoding, height, width, step, data):
    message = Image(height=height, width=width, encoding=encoding, step=step, data=data)
    try:
        picture = bgr_from_image(message)
    except SoftformError as error:
        assert error.next_step
        return
    assert picture.shape == (height, width, 3)


def test_a_source_that_is_none_is_rejected(tmp_path):
    (tmp_path / "notes.mp4").write_text("no video")
    for source in (str(tmp_path / "none.mp4"), str(tmp_path / "notes.mp4"), "77"):
        with pytest.raises(SoftformError) as caught:
            CapturedImages(source)
        assert source in str(caught.value)


def test_a_camera_that_is_plugged_in_again_still_gives_its_newest_image(monkeypatch):
    class Unplugged:
        """A camera of OpenCV that forgets its settings whenever it is opened, and is gone at the first read."""

        def __init__(self, index):
            self.reads = 0
            self.open(index)

        def open(self, index):
            self.settings = {}

        def isOpened(self):  # noqa: N802 - OpenCV's name
            return True

        def set(self, key, value):
            self.settings[key] = value

        def get(self, key):
            return self.settings.get(key, 0.0)

        def read(self):
            self.reads += 1
            return self.reads > 1, np.zeros((2, 2, 3), dtype=np.uint8)

        def release(self):
            pass

    monkeypatch.setattr(cv2, "VideoCapture", Unplugged)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    images = CapturedImages("0", (1280, 720))
    assert images.read() is None
    assert images._capture.settings[cv2.CAP_PROP_BUFFERSIZE] == 1
    assert images._capture.settings[cv2.CAP_PROP_FRAME_WIDTH] == 1280
    assert images._capture.settings[cv2.CAP_PROP_FRAME_HEIGHT] == 720
    assert images.read() is not None


@pytest.mark.parametrize(
    "content",
    ["", "a: 1", "camera_matrix: {data: [1, 2]}", "camera_matrix: {data: [0, 0, 0, 0, 0, 0, 0, 0, 1]}\n"
     "distortion_coefficients: {data: [0, 0, 0, 0]}"],
)  # fmt: skip
def test_a_lens_that_is_none_is_rejected(tmp_path, content):
    (tmp_path / "lens.yaml").write_text(content)
    with pytest.raises(SoftformError, match="lens.yaml"):
        Lens.from_file(tmp_path / "lens.yaml")


def test_a_lens_is_read_as_ros_writes_it(tmp_path):
    (tmp_path / "lens.yaml").write_text(
        "image_width: 640\nimage_height: 480\n"
        "camera_matrix: {rows: 3, cols: 3, data: [600, 0, 320, 0, 610, 240, 0, 0, 1]}\n"
        "distortion_model: plumb_bob\ndistortion_coefficients: {rows: 1, cols: 5, data: [0.1, 0, 0, 0, 0]}\n"
    )
    lens = Lens.from_file(tmp_path / "lens.yaml")
    assert lens.matrix[1, 1] == 610.0 and lens.size == (640, 480)


def test_a_lens_by_another_model_is_rejected(tmp_path):
    (tmp_path / "lens.yaml").write_text(
        "camera_matrix: {data: [600, 0, 320, 0, 610, 240, 0, 0, 1]}\n"
        "distortion_model: equidistant\ndistortion_coefficients: {data: [0.1, 0, 0, 0]}\n"
    )
    with pytest.raises(SoftformError, match="equidistant"):
        Lens.from_file(tmp_path / "lens.yaml")


def test_a_lens_that_was_calibrated_with_other_images_is_rejected(camera):
    picture = camera.picture(SHEET, [red_disc(0.1, 0.05)])
    height, width = picture.shape[:2]
    lens = Lens(camera.matrix, np.zeros(5), (width, height))
    assert not make_tracker(lens=lens).look(picture, 0.0).is_lost
    sighting = make_tracker(lens=lens).look(cv2.resize(picture, (640, 480)), 0.0)
    assert sighting.is_lost and f"640x480 pixels, but the lens was calibrated with {width}x{height}" in sighting.problem
    assert ColourMarker().area == pytest.approx(1.131e-4, rel=1e-3)
