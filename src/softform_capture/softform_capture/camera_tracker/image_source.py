"""Where images come from: a camera of this machine, a video, a numbered sequence of images, or a ROS topic."""

import contextlib
import queue
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError

TOPIC_PREFIX = "topic:"
_FALLBACK_RATE = 30.0
_RETRY_PERIOD = 1.0  # s


class TimedImage(NamedTuple):
    """A picture (height, width, 3), blue, green, red, and when it was taken, s since the epoch."""

    picture: NDArray[np.uint8]
    captured_at: float


class ImageSource(Protocol):
    """Gives one image after another."""

    def read(self) -> TimedImage | None:
        """The next image; None if none came within a second.

        Raises:
            SoftformError: If no more will come.
        """

    def close(self) -> None:
        """Let go of the device."""


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
        """See `ImageSource`."""
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
        """See `ImageSource`."""
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
        """See `ImageSource`."""
        try:
            return self._newest.get(timeout=1.0)
        except queue.Empty:
            return None

    def close(self) -> None:
        """See `ImageSource`."""
