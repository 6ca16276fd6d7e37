"""Conversion of files that earlier versions wrote: robots, realities, model cards and Zarr stores, in place.

Other packages add conversions of their own files by entry points of the group `softform.conversions`: functions of a
path that return what they did, in lines for people, or None if the path is not theirs.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import yaml
import zarr
from pydantic import ValidationError

from softform_core.errors import SoftformError
from softform_core.networks.card import ModelCard, card_in_new_form, is_earlier_card
from softform_core.networks.sim_to_real_card import SurfaceSimToRealCard
from softform_core.networks.surface_card import SurfaceKinematicsCard
from softform_core.networks.tip_card import TipKinematicsCard, TipSimToRealCard
from softform_core.plugins import load_plugin, plugin_kinds
from softform_core.robots import Robot, read_robot
from softform_core.robots.earlier_form import earlier_fingerprint, reality_in_new_form, robot_in_new_form

CONVERSIONS = "softform.conversions"

_CARDS: dict[str, type[ModelCard]] = {
    str(card.model_fields["model"].default): card
    for card in (SurfaceKinematicsCard, SurfaceSimToRealCard, TipKinematicsCard, TipSimToRealCard)
}

_PAGES = {"forward_kinematics": "README.md"}
"""Pages whose name is not that of their card."""

_STAMP = "robot_fingerprint"


def convert(path: Path, robot: Robot | None) -> list[str]:
    """Bring what lies at `path` into the form of this version.

    Args:
        path: Description of a robot or a reality (.yaml), a folder of model cards, a card (.json), a Zarr store, or
            what the conversion of another package knows.
        robot: Robot of the model or store; not needed for anything else.

    Returns:
        What was done, in lines for people; empty if nothing had to be.

    Raises:
        SoftformError: If there is nothing that can be converted, or it belongs to another robot.
    """
    if path.suffix in (".yaml", ".yml"):
        return _convert_description(path)
    if path.suffix == ".json":
        return _convert_card(path, _needed(robot, path))
    if path.is_dir() and (path / "zarr.json").is_file():
        return _convert_store(path, _needed(robot, path))
    cards = sorted(path.rglob("*.json")) if path.is_dir() else []
    if cards:
        return [line for card in cards for line in _convert_card(card, _needed(robot, path))]
    for kind in plugin_kinds(CONVERSIONS):
        conversion, _ = load_plugin(CONVERSIONS, kind, "conversion")
        lines: list[str] | None = conversion(path)
        if lines is not None:
            return lines
    raise SoftformError(
        f"{path} is neither a description (.yaml), a model folder, a Zarr store nor a bag.", "Check the path."
    )


def _needed(robot: Robot | None, path: Path) -> Robot:
    if robot is None:
        raise SoftformError(f"The robot of {path} is not given.", "Add: --robot NAME")
    return robot


def _convert_description(path: Path) -> list[str]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise SoftformError(f"{path} cannot be read: {error}.", "Check the path.") from error
    if not isinstance(content, dict):
        raise SoftformError(f"{path} describes neither a robot nor a reality.", "Check the path.")
    if "body" in content:
        return []
    if "actuation" in content:
        try:
            new, what = robot_in_new_form(content), "robot"
        except (KeyError, TypeError) as error:
            raise SoftformError(f"{path} lacks the field {error}.", "Complete the description first.") from error
        read_robot(new, path)
    elif "membrane" in content or "rod" in content:
        new, what = reality_in_new_form(content), "reality"
    else:
        raise SoftformError(f"{path} describes neither a robot nor a reality.", "Check the path.")
    _replace(path, yaml.safe_dump(new, sort_keys=False, allow_unicode=True))
    return [f"{path}: {what} converted; the old file is {path.name}.old (its comments are not in the new one)"]


def _convert_card(path: Path, robot: Robot) -> list[str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SoftformError(f"The model card {path} cannot be read: {error}.", "Check the path.") from error
    if not isinstance(content, dict) or not (_is_earlier(content, robot, path) or is_earlier_card(content)):
        return []
    content[_STAMP] = robot.fingerprint()
    try:
        new = card_in_new_form(content, robot) if is_earlier_card(content) else content
        card = _CARDS[new["model"]].model_validate(new)
    except (KeyError, TypeError, ValidationError) as error:
        raise SoftformError(
            f"The model card {path} is damaged: {error}.", "Train the model again, or fetch the card again."
        ) from error
    _replace(path, card.model_dump_json(indent=2) + "\n")
    page = path.with_name(_PAGES.get(path.stem, f"{path.stem}.md"))
    page.write_text(card.to_markdown(), encoding="utf-8")
    return [f"{path}: model card converted; the old card is {path.name}.old"]


def _convert_store(path: Path, robot: Robot) -> list[str]:
    try:
        group = zarr.open_group(path, mode="r+")
        attributes: dict[str, Any] = dict(group.attrs)
    except (OSError, ValueError, KeyError, zarr.errors.BaseZarrError) as error:
        raise SoftformError(f"{path} is not a Zarr group that can be written: {error}.", "Check the path.") from error
    earlier = _is_earlier(attributes, robot, path)
    if earlier:
        group.attrs[_STAMP] = robot.fingerprint()
    return [f"{path}: store converted"] if _convert_tip_simulation(group) or earlier else []


def _convert_tip_simulation(group: zarr.Group) -> bool:
    """Bring a store of the earlier schema `softform/tip-simulation` into `softform/simulation`; whether it was one."""
    if group.attrs.get("schema") != "softform/tip-simulation":
        return False
    status = np.asarray(group["status"])
    for name, dtype in (("iterations", "i4"), ("solve_seconds", "f8")):
        group.create_array(name, shape=status.shape, chunks=(max(4096, len(status)),), dtype=dtype, overwrite=True)
    failures = {str(sample): "There is no equilibrium." for sample in np.flatnonzero(status == 2)}
    group.attrs.update({"failures": failures, "strategy": "grid", "schema": "softform/simulation"})
    return True


def _is_earlier(content: dict[str, Any], robot: Robot, path: Path) -> bool:
    """Whether a card or store is this robot's and of the earlier form.

    Raises:
        SoftformError: If it is another robot's.
    """
    found = content.get(_STAMP)
    if found is None or found == robot.fingerprint():
        return False
    if content.get("robot") != robot.name or found != earlier_fingerprint(robot):
        raise SoftformError(
            f"{path} was made for robot '{content.get('robot')}' (description {found}), not for '{robot.name}'.",
            "Give the robot that it was made for, by name or by the path of its description.",
        )
    return True


def _replace(path: Path, text: str) -> None:
    """Write a file anew; the old one stays beside it."""
    old, new = path.with_name(path.name + ".old"), path.with_name(path.name + ".new")
    try:
        new.write_text(text, encoding="utf-8")
        os.replace(path, old)
        os.replace(new, path)
    except OSError as error:
        raise SoftformError(f"{path} cannot be written: {error.strerror}.", "Check disk and permissions.") from error
