"""Images of ROS cameras as OpenCV takes them."""

import cv2
import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image

from softform_core.errors import SoftformError

_TO_BGR: dict[str, tuple[int, int | None]] = {
    "bgr8": (3, None),
    "rgb8": (3, cv2.COLOR_RGB2BGR),
    "bgra8": (4, cv2.COLOR_BGRA2BGR),
    "rgba8": (4, cv2.COLOR_RGBA2BGR),
    "yuv422_yuy2": (2, cv2.COLOR_YUV2BGR_YUY2),
}
_MOST_PIXELS = 8192


def bgr_from_image(message: Image) -> NDArray[np.uint8]:
    """The picture in a `sensor_msgs/Image`, (height, width, 3) blue, green, red.

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
