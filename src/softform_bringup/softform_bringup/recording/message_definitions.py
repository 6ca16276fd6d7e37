"""Definitions of ROS messages for `rosbags`, from the standard set and from the packages that are installed."""

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from softform_core.errors import SoftformError


def standard_definitions() -> Typestore:
    """Return the definitions that come with ROS 2 Jazzy."""
    return get_typestore(Stores.ROS2_JAZZY)


def ensure_defined(definitions: Typestore, message_type: str) -> None:
    """Add `message_type` (such as `softform_interfaces/msg/Surface`) and its package's messages, if they are missing.

    Raises:
        SoftformError: If its package is not installed or does not define it.
    """
    if message_type in definitions.fielddefs:
        return
    package = message_type.split("/")[0]
    try:
        folder = Path(get_package_share_directory(package)) / "msg"
    except (PackageNotFoundError, ValueError) as error:
        raise SoftformError(
            f"The package '{package}' of {message_type} is not installed.", "Source the workspace that has it."
        ) from error
    found = {}
    for file in sorted(folder.glob("*.msg")):
        found.update(get_types_from_msg(file.read_text(), f"{package}/msg/{file.stem}"))
    definitions.register({name: fields for name, fields in found.items() if name not in definitions.fielddefs})
    if message_type not in definitions.fielddefs:
        raise SoftformError(f"{folder} does not define {message_type}.", "Build the workspace with ./softform build.")
