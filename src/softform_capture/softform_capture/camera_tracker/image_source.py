"""Sources of images: a camera of this machine, a video, a numbered sequence of images, or a ROS topic."""

import contextlib
import queue
import time
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from sensor_msgs.msg import Image

from softform_capture.camera_tracker.code_sheet import Picture
from softform_core.errors import SoftformError

TOPIC_PREFIX = "topic:"
_FALLBACK_RATE = 30.0
_RETRY_PERIOD = 1.0  # s
_TO_BGR: dict[str, tuple[int, int | None]] = {
    "bgr8": (3, None),
    "rgb8": (3, cv2.COLOR_RGB2BGR),
    "bgra8": (4, cv2.COLOR_BGRA2BGR),
    "rgba8": (4, cv2.COLOR_RGBA2BGR),
    "yuv422_yuy2": (2, cv2.COLOR_YUV2BGR_YUY2),
}
_MOST_PIXELS = 8192


class TimedImage(NamedTuple):
    """A picture (height, width, 3), blue, green, red, and when it was taken, s since the epoch."""

    picture: Picture
    captured_at: float


class CapturedImages:
    """Images of a camera of this machine, by its index, or of a video or sequence, at the rate at which it was taken.

    Args:
        source: Index, path of a video, or pattern such as `frames/%04d.png`.
        size: Width and height that a camera is asked for, pixels; None for what it gives by itself.

    Raises:
        SoftformError: If it cannot be opened.
    """

    def __init__(self, source: str, size: tuple[int, int] | None = None) -> None:
        self._source, self._is_live, self._size = source, source.isdecimal(), size
        if not self._is_live and "%" not in source and not Path(source).is_file():
            raise SoftformError(f"The video {source} does not exist.", "Check the parameter source.")
        self._capture = cv2.VideoCapture(int(source)) if self._is_live else cv2.VideoCapture(source)
        if not self._capture.isOpened():
            raise SoftformError(
                f"{'Camera ' if self._is_live else ''}{source} cannot be opened.",
                "Is it plugged in, free, and this user in the group 'video'?" if self._is_live else "Is it a video?",
            )
        self._set_up()
        rate = float(self._capture.get(cv2.CAP_PROP_FPS))
        self._period = 1.0 / rate if 0.0 < rate <= 1000.0 else 1.0 / _FALLBACK_RATE
        self._due = time.monotonic()

    def read(self) -> TimedImage | None:
        """Return the next image; None if there was none, and the camera was opened anew.

        Raises:
            SoftformError: If a video has ended.
        """
        if not self._is_live:
            time.sleep(max(0.0, self._due - time.monotonic()))
            self._due = max(self._due, time.monotonic() - self._period) + self._period
        is_read, picture = self._capture.read()
        if is_read:
            return TimedImage(np.asarray(picture, dtype=np.uint8), time.time())
        if not self._is_live:
            raise SoftformError(f"{self._source} has ended.", "Activate the node again to play it again.")
        time.sleep(_RETRY_PERIOD)  # a camera that was unplugged may be plugged in again
        self._capture.open(int(self._source))
        self._set_up()
        return None

    def _set_up(self) -> None:
        """Set the image size, and that the device hands out the newest image; needed at each opening."""
        if self._is_live and self._size is not None:
            self._capture.set(cv2.CAP_PROP_FRAME_WIDTH, self._size[0])
            self._capture.set(cv2.CAP_PROP_FRAME_HEIGHT, self._size[1])
        self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)

    def close(self) -> None:
        """Let go of the device."""
        self._capture.release()


class HandedImages:
    """Images that another thread hands over, as a subscription does; only the newest waits."""

    def __init__(self) -> None:
        self._newest: queue.Queue[TimedImage] = queue.Queue(maxsize=1)

    def hand(self, image: TimedImage) -> None:
        """Put an image in the place of the one that waits."""
        with contextlib.suppress(queue.Empty):
            self._newest.get_nowait()
        self._newest.put(image)

    def read(self) -> TimedImage | None:
        """Return the next image; None if none came within a second."""
        try:
            return self._newest.get(timeout=1.0)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def bgr_from_image(message: Image) -> Picture:
    """Return the picture in a `sensor_msgs/Image`, (height, width, 3) blue, green, red.

    Raises:
        SoftformError: If the encoding has no colours or is not known, or the data do not fit the size.
    """
    if message.encoding not in _TO_BGR:
        raise SoftformError(
            f"The image's encoding is '{message.encoding}'.", f"Let the camera send one of: {', '.join(_TO_BGR)}."
        )
    channels, conversion = _TO_BGR[message.encoding]
    height, width = message.height, message.width
    step = message.step or width * channels
    too_large = max(height, width) > _MOST_PIXELS
    if 0 in (height, width) or too_large or step < width * channels or len(message.data) < step * height:
        raise SoftformError(
            f"An image of {width} x {height} pixels in rows of {step} bytes cannot have {len(message.data)} bytes.",
            "Check the driver of the camera.",
        )
    if channels == 2 and width % 2:
        raise SoftformError(f"A {message.encoding} image cannot be {width} pixels wide.", "Check the camera's driver.")
    rows = np.frombuffer(message.data, dtype=np.uint8, count=step * height).reshape(height, step)
    picture = np.ascontiguousarray(rows[:, : width * channels]).reshape(height, width, channels)
    return picture if conversion is None else np.asarray(cv2.cvtColor(picture, conversion), dtype=np.uint8)
