"""Definitions of ROS messages for `rosbags`, from the standard set and from the packages that are installed."""

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rosbags.interfaces import Connection, MessageDefinitionFormat, Nodetype
from rosbags.interfaces.typing import FieldDesc
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from softform_core.errors import SoftformError


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


def recorded_hash(recorded: Connection) -> str:
    """Return the type hash (`RIHS01_…`) of a topic's messages, by the bag or its definition; empty if unknown."""
    if recorded.digest or recorded.msgdef.format is not MessageDefinitionFormat.MSG:
        return recorded.digest
    definitions = get_typestore(Stores.EMPTY)
    try:
        definitions.register(get_types_from_msg(recorded.msgdef.data, recorded.msgtype))
        return definitions.hash_rihs01(recorded.msgtype)
    except (TypesysError, KeyError, ValueError):
        return ""


def is_of_todays_form(recorded: Connection) -> bool:
    """Return whether messages have the installed definition of their type, or the bag does not tell.

    Raises:
        SoftformError: For the reasons of `ensure_defined`.
    """
    definitions = standard_definitions()
    ensure_defined(definitions, recorded.msgtype)
    return recorded_hash(recorded) in ("", definitions.hash_rihs01(recorded.msgtype))


def _messages_in(description: FieldDesc) -> list[str]:
    if description[0] is Nodetype.ARRAY or description[0] is Nodetype.SEQUENCE:
        return _messages_in(description[1][0])
    return [description[1]] if description[0] is Nodetype.NAME else []
