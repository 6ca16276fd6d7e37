"""The node as its own process: a video or images on a topic go in, markers and diagnostics come out."""

import signal
import time

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import Image

from softform_capture.camera_tracker.code_sheet import SHEETS
from softform_interfaces.msg import MarkerFrame
from softform_ros import qos
from softform_ros.conversions import positions_from_markers, seconds_from_stamp, stamp_from_seconds

DIAMETER, RED, FRAME_RATE = 0.012, (30, 30, 200), 20.0
# The marker goes round; in the last places it is hidden.
PATH = [(0.12 * np.cos(angle), 0.02 + 0.12 * np.sin(angle)) for angle in np.linspace(0.2, 2.0, 8)] + [None, None]
REPEATS = 4


@pytest.fixture(scope="module")
def pictures(sheet_camera):
    camera = sheet_camera([0.05, -0.2, 0.75])
    discs = [[] if place is None else [(np.array([*place, 0.0]), DIAMETER, RED)] for place in PATH]
    return [camera.picture(SHEETS["A4"], shown, seed=seed) for seed, shown in enumerate(discs)]


@pytest.fixture
def start_tracker(start_process):
    def start(**parameters):
        markers = (MarkerFrame, "captured_markers", qos.CAPTURED_MARKERS)
        return start_process("softform_capture.camera_tracker_node", "camera_tracker", markers, **parameters)

    return start


def test_every_frame_of_a_video_is_published(tmp_path, pictures, start_tracker):
    height, width = pictures[0].shape[:2]
    video = cv2.VideoWriter(str(tmp_path / "robot.avi"), cv2.VideoWriter.fourcc(*"MJPG"), FRAME_RATE, (width, height))
    for _ in range(REPEATS):
        for picture in pictures:
            video.write(picture)
    video.release()
    tracker = start_tracker(source=tmp_path / "robot.avi")
    tracker.start()
    status, values = tracker.wait_for_status("has ended")
    assert status.level == DiagnosticStatus.ERROR
    assert values["frames"] == str(REPEATS * len(PATH))
    assert len(tracker.messages) >= len(PATH)
    for message in tracker.messages:
        place = PATH[(message.frame_number - 1) % len(PATH)]
        assert message.name == ["tip"]
        assert message.visible == [place is not None]
        found = positions_from_markers(message)[0]
        if place is None:
            assert np.isnan(found).all()
        else:
            assert found == pytest.approx([*place, 0.0], abs=1e-3)


def test_images_of_a_ros_camera_keep_their_stamps_and_silence_is_reported(pictures, start_tracker):
    tracker = start_tracker(source="topic:camera/image_raw", marker="finger", hold_codes=0.0, least_rate=0.1)
    camera = tracker.node.create_publisher(Image, "camera/image_raw", qos.CAMERA_INPUT)
    tracker.start()
    tracker.wait(lambda: camera.get_subscription_count() == 1)
    captured_at = time.time() - 1.0
    picture = np.ascontiguousarray(pictures[0])
    message = Image(height=picture.shape[0], width=picture.shape[1], encoding="bgr8", step=picture.strides[0])
    message.header.stamp = stamp_from_seconds(captured_at)
    message._data.frombytes(picture.tobytes())

    def is_reported(words):
        return any(words in status.message for status in tracker.statuses)

    def send():
        camera.publish(message)
        time.sleep(0.2)

    tracker.wait(lambda: is_reported("the marker is seen") or send())
    assert seconds_from_stamp(tracker.messages[0].header.stamp) == pytest.approx(captured_at, abs=1e-6)
    assert tracker.messages[0].name == ["finger"]
    assert positions_from_markers(tracker.messages[0])[0] == pytest.approx([*PATH[0], 0.0], abs=1e-3)
    status, _ = tracker.wait_for_status("no image for")
    assert status.level == DiagnosticStatus.ERROR
    message = Image(height=2, width=2, encoding="mono8", step=2, data=bytes(4))
    tracker.wait(lambda: is_reported("capture time 0.0 of the image is not a time") or send())
    message.header.stamp = stamp_from_seconds(captured_at)
    tracker.wait(lambda: is_reported("encoding is 'mono8'") or send())
    tracker.process.send_signal(signal.SIGTERM)
    assert tracker.process.wait(30.0) == 0
