"""Definitions of ROS messages for `rosbags`, from the standard set and from the packages that are installed."""

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rosbags.interfaces import Nodetype
from rosbags.interfaces.typing import FieldDesc
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from softform_core.errors import SoftformError
from softform_recording.earlier_messages import EARLIER_ACTUATION


def standard_definitions() -> Typestore:
    """Return the definitions that come with ROS 2 Jazzy."""
    return get_typestore(Stores.ROS2_JAZZY)


def ensure_defined(definitions: Typestore, message_type: str) -> None:
    """Add `message_type` (such as `softform_interfaces/msg/Surface`) and the messages in it, if they are missing.

    Raises:
        SoftformError: If a package is not installed, does not define its message, or not in a way that is understood.
    """
    if message_type in definitions.fielddefs:
        return
    package, _, name = message_type.split("/")
    try:
        folder = Path(get_package_share_directory(package)) / "msg"
    except (PackageNotFoundError, ValueError) as error:
        raise SoftformError(
            f"The package '{package}' of {message_type} is not installed.", "Source the workspace that has it."
        ) from error
    try:
        found = get_types_from_msg((folder / f"{name}.msg").read_text(), message_type)
    except OSError as error:
        raise SoftformError(
            f"{folder} does not define {message_type}.", "Build the workspace with ./softform build."
        ) from error
    except TypesysError as error:
        raise SoftformError(
            f"The definition of {message_type} is not understood: {error}", "Record without it."
        ) from error
    for _, fields in found.values():
        for _, description in fields:
            for nested in _messages_in(description):
                ensure_defined(definitions, nested)
    definitions.register(found)


def is_of_todays_form(message_type: str, recorded_hash: str) -> bool:
    """Whether messages were recorded with the definition of their type that is installed.

    Args:
        message_type: Such as `softform_interfaces/msg/Surface`.
        recorded_hash: Type hash (`RIHS01_…`); empty if the bag does not tell it: then they are taken to be.

    Raises:
        SoftformError: For the reasons of `ensure_defined`.
    """
    if message_type == EARLIER_ACTUATION:
        return False
    definitions = standard_definitions()
    ensure_defined(definitions, message_type)
    return not recorded_hash or recorded_hash == definitions.hash_rihs01(message_type)


def _messages_in(description: FieldDesc) -> list[str]:
    if description[0] is Nodetype.ARRAY or description[0] is Nodetype.SEQUENCE:
        return _messages_in(description[1][0])
    return [description[1]] if description[0] is Nodetype.NAME else []
