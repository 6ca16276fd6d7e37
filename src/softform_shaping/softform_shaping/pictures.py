"""Pictures of a depth camera as messages: packed for the emulated one, paired and unpacked for whoever looks."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from softform_client.capture_watch import Capture, CaptureWatch, Moment
from softform_core.errors import SoftformError
from softform_ros.conversions import nanoseconds_from_stamp, seconds_from_stamp
from softform_shaping.camera import Intrinsics, Picture

__all__ = ["Pair", "PictureWatch", "camera_info", "image_messages", "unpacked"]

_MILLI = 1e-3
_KEPT = 8
"""Images that wait for the one of the same moment."""
_SQUARE = 0.01
"""By which both focal lengths may differ, of one."""
_TYPES: dict[str, tuple[type[np.generic], int]] = {
    "rgb8": (np.uint8, 3),
    "bgr8": (np.uint8, 3),
    "16UC1": (np.uint16, 1),
    "32FC1": (np.float32, 1),
}


class Pair(NamedTuple):
    """Messages of one moment: colour, depth that lies on its pixels, and the camera."""

    colour: Image
    depth: Image
    info: CameraInfo


def image_messages(picture: Picture, header: Header) -> tuple[Image, Image]:
    """Colour as rgb8; depth in whole millimetres, as cameras of its kind send it."""
    height, width = picture.depth.shape
    millimetres = np.clip(np.round(picture.depth / _MILLI), 0, 65535).astype("<u2")
    colour = Image(header=header, height=height, width=width, encoding="rgb8", step=3 * width)
    depth = Image(header=header, height=height, width=width, encoding="16UC1", step=2 * width)
    # The setter checks a list element by element; an array of bytes is taken as it is.
    colour._data.frombytes(picture.colour.tobytes())
    depth._data.frombytes(millimetres.tobytes())
    return colour, depth


def camera_info(intrinsics: Intrinsics, header: Header) -> CameraInfo:
    """Of a camera without distortion."""
    (cx, cy), focal = intrinsics.centre, intrinsics.focal
    return CameraInfo(
        header=header,
        height=intrinsics.height,
        width=intrinsics.width,
        distortion_model="plumb_bob",
        d=[0.0] * 5,
        k=[focal, 0.0, cx, 0.0, focal, cy, 0.0, 0.0, 1.0],
        p=[focal, 0.0, cx, 0.0, 0.0, focal, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    )


def unpacked(pair: Pair) -> tuple[Picture, Intrinsics]:
    """Picture and camera of messages.

    Raises:
        SoftformError: If they are of another encoding, size or kind of camera than can be used.
    """
    colour, depth = _pixels(pair.colour, ("rgb8", "bgr8")), _pixels(pair.depth, ("16UC1", "32FC1"))
    if colour.shape[:2] != depth.shape[:2]:
        raise SoftformError(
            f"Colour has {colour.shape[1]} x {colour.shape[0]} pixels, depth {depth.shape[1]} x {depth.shape[0]}.",
            "Let the camera's driver align depth to colour.",
        )
    if pair.colour.encoding == "bgr8":
        colour = colour[..., ::-1]
    metres = depth[..., 0].astype(np.float32) * (_MILLI if pair.depth.encoding == "16UC1" else 1.0)
    fx, fy, cx, cy = pair.info.k[0], pair.info.k[4], pair.info.k[2], pair.info.k[5]
    if not (np.isfinite([fx, fy, cx, cy]).all() and fx > 0.0 and abs(fy / fx - 1.0) < _SQUARE):
        raise SoftformError(
            f"The camera's focal lengths are {fx:g} and {fy:g} pixels.", "Publish the camera_info of a calibrated one."
        )
    if np.abs(pair.info.d).max(initial=0.0) > 0.0:
        raise SoftformError("The camera's images are distorted.", "Publish rectified ones, with no distortion (d).")
    height, width = metres.shape
    return Picture(np.ascontiguousarray(colour), np.nan_to_num(metres, posinf=0.0)), Intrinsics(
        width, height, float(fx), (float(cx), float(cy))
    )


def _pixels(image: Image, encodings: tuple[str, ...]) -> NDArray[np.generic]:
    if image.encoding not in encodings or image.is_bigendian:
        raise SoftformError(
            f"An image of the camera is '{image.encoding}'.", f"Publish {' or '.join(encodings)}, little-endian."
        )
    kind, channels = _TYPES[image.encoding]
    row = image.width * channels * np.dtype(kind).itemsize
    if image.step < row or len(image.data) < image.step * image.height or not image.width * image.height:
        raise SoftformError("An image of the camera has fewer bytes than its size says.", "Look at its driver.")
    data = np.frombuffer(image.data, dtype=np.uint8)[: image.step * image.height].reshape(image.height, image.step)
    found: NDArray[np.generic] = np.ascontiguousarray(data[:, :row]).view(kind)
    return found.reshape(image.height, image.width, channels)


class PictureWatch:
    """The newest pair of images of one moment; written by the executor, waited for by the worker."""

    def __init__(self) -> None:
        self._watch: CaptureWatch[Pair] = CaptureWatch()
        self._waiting: dict[str, OrderedDict[int, Image]] = {"colour": OrderedDict(), "depth": OrderedDict()}
        self._info: CameraInfo | None = None
        self._lock = threading.Lock()

    def take_info(self, message: CameraInfo) -> None:
        """Take a `camera_info`."""
        self._info = message

    def taker(self, which: str) -> Callable[[Image], None]:
        """What takes images: of `colour`, or `depth`."""
        own, other = self._waiting[which], self._waiting["depth" if which == "colour" else "colour"]

        def take(message: Image) -> None:
            moment = nanoseconds_from_stamp(message.header.stamp)
            with self._lock:
                found = other.pop(moment, None)
                if found is None or self._info is None:
                    own[moment] = message
                    while len(own) > _KEPT:
                        own.popitem(last=False)
                    return
                pair = Pair(*((message, found) if which == "colour" else (found, message)), self._info)
            self._watch.note(pair, seconds_from_stamp(message.header.stamp))

        return take

    def wait_for_one_after(
        self, moment: Moment, timeout: float, should_stop: Callable[[], bool]
    ) -> Capture[Pair] | None:
        """As `CaptureWatch.wait_for_one_after`."""
        return self._watch.wait_for_one_after(moment, timeout, should_stop)
