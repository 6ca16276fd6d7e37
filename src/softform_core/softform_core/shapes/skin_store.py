"""Skins of a robot: those on disk beside its models, `models/<robot>/skins/<name>.npz`, and that of its body."""

import io
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from softform_core.errors import SoftformError
from softform_core.files import made_folder, write_atomically
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.shapes.body_skin import body_skin, has_body_skin
from softform_core.surface.skin import Skin

BODY = "body"
"""Name of the skin that a robot without a surface has by its description, unless one of that name was bound."""

_SCHEMA = ("softform/skin", 1)
_KEPT = 8


def skin_path(robot: str, name: str) -> Path:
    """Return the file of a robot's skin."""
    return models_of(robot) / "skins" / f"{name}.npz"


def skin_names(robot: Robot) -> list[str]:
    """Return the names of a robot's skins, the newest first; at last `BODY` where its body tells its own."""
    found = [(path.stat().st_mtime_ns, path.stem) for path in skin_path(robot.name, "*").parent.glob("*.npz")]
    bound = [name for _, name in sorted(found, reverse=True)]
    return [*bound, BODY] if BODY not in bound and has_body_skin(robot) else bound


def save_skin(path: Path, skin: Skin) -> None:
    """Write a skin; an older one is replaced.

    Raises:
        SoftformError: If it cannot be written.
    """
    skin.card.update(schema=_SCHEMA[0], schema_version=_SCHEMA[1])
    content = io.BytesIO()
    np.savez_compressed(content, **skin.arrays())  # type: ignore[arg-type]  # numpy takes any names
    made_folder(path.parent)
    write_atomically(path, content.getvalue())


def load_skin(robot: Robot, name: str) -> Skin:
    """Return a skin of a robot; one that is read again and again is kept.

    Raises:
        SoftformError: If there is none, it is damaged, or was bound to another description of the robot.
    """
    path = skin_path(robot.name, name)
    try:
        return _read(path, path.stat().st_mtime_ns, robot.fingerprint())
    except FileNotFoundError:
        if name == BODY and has_body_skin(robot):
            return body_skin(robot)
        known = ", ".join(skin_names(robot)) or "none"
        raise SoftformError(
            f"Robot '{robot.name}' has no skin '{name}' (known: {known}).", "Bind one: ./softform skin FILE --unit mm."
        ) from None


@lru_cache(_KEPT)
def _read(path: Path, changed: int, fingerprint: str) -> Skin:
    remedy = "Bind it anew with ./softform skin, or remove the file."
    try:
        with np.load(path, allow_pickle=False) as file:
            skin = Skin.of_arrays(file)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise SoftformError(f"{path} cannot be read: {error}.", remedy) from error
    if (skin.card.get("schema"), skin.card.get("schema_version")) != _SCHEMA:
        raise SoftformError(f"{path} is no skin of this form.", remedy)
    if skin.card.get("robot_fingerprint") != fingerprint:
        raise SoftformError(f"{path} was bound to another description of the robot than it has now.", remedy)
    return skin
