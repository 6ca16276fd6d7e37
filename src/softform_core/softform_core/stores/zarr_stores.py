"""Common rules of all Zarr stores: each appears whole, and is opened only if it is what it should be."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import zarr
from zarr.core.buffer import Buffer
from zarr.storage import LocalStore

from softform_core.errors import SoftformError
from softform_core.files import replace_file, sync_folder
from softform_core.robots import Robot

Shapes = dict[str, tuple[int, ...]]
Rows = dict[str, tuple[tuple[int, ...], str]]
"""Arrays with one row an actuation: shape of a row, and type."""


class DurableFolder(LocalStore):
    """A folder whose files are each as they were or whole, whatever stops the machine, and stay so after `sync`."""

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        super().__init__(root, read_only=read_only)
        self._changed: set[Path] = set()

    def set_sync(self, key: str, value: Buffer) -> None:
        """Replace one file."""
        self._ensure_open_sync()
        self._check_writable()
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        self._changed.add(path.parent)
        replace_file(path, value.as_buffer_like())

    async def _set(self, key: str, value: Buffer, exclusive: bool = False) -> None:
        if exclusive and (self.root / key).exists():
            raise FileExistsError(key)
        self.set_sync(key, value)  # a thread for each small file would take longer than the file

    async def delete(self, key: str) -> None:
        """Remove one file, or a folder with all in it."""
        self._changed.add((self.root / key).parent)
        await super().delete(key)

    def sync(self) -> None:
        """Wait until all that was written is on disk, names included.

        Raises:
            OSError: If the disk fails.
        """
        folders = {one for changed in self._changed for one in (changed, *changed.parents)}
        for folder in sorted(folders, reverse=True):
            if folder.is_relative_to(self.root) and folder.is_dir():
                sync_folder(folder)
        self._changed.clear()


def sync(group: zarr.Group) -> None:
    """Wait until all that was written into an open store is on disk: what comes after may say so.

    Raises:
        OSError: If the disk fails.
    """
    assert isinstance(group.store, DurableFolder)
    group.store.sync()


@dataclass(frozen=True)
class StoreKind:
    """One kind of store.

    Attributes:
        name: Name in messages, such as "simulation".
        schema: Attribute `schema`.
        version: Attribute `schema_version`.
        attributes: Required attributes besides `robot` and `robot_fingerprint`.
        made_by: Command that makes one, without the robot; empty: the robot's `first_command`.
        misshapen: Names the arrays, of the given shapes, that are missing or do not fit.
    """

    name: str
    schema: str
    version: int
    attributes: tuple[str, ...]
    made_by: str
    misshapen: Callable[[Shapes], list[str]]

    def command(self, robot: Robot | None) -> str:
        """Return the command that makes one of a robot, or of one that is not known."""
        if not self.made_by:
            return "./softform simulate --robot NAME" if robot is None else robot.first_command
        return f"{self.made_by} --robot {'NAME' if robot is None else robot.given_as}"


def misshapen_rows(shapes: Shapes, rows: Rows) -> list[str]:
    """Name the arrays that are missing, or have other rows or fewer than `actuation`."""
    if len(shapes.get("actuation", ())) != 2:
        return ["actuation"]
    # An interrupted growth leaves these arrays longer than `actuation`, which counts.
    count = shapes["actuation"][0]
    return [
        name
        for name, (row, _) in rows.items()
        if not (shape := shapes.get(name)) or shape[1:] != row or shape[0] < count
    ]


def open_group(path: Path, kind: StoreKind, robot: Robot | None, *, writable: bool) -> zarr.Group:
    """Open a store's group once its schema, attributes, arrays and robot, if one is given, are seen to be right.

    Raises:
        SoftformError: If there is no store, or it is other than expected.
    """
    if not path.exists():
        raise SoftformError(
            f"There is no {kind.name} at {path}.",
            f"Make one with: {kind.command(robot)} --output {path}",
        )
    try:
        group = zarr.open_group(DurableFolder(path), mode="r+" if writable else "r")
        attributes = dict(group.attrs)
        shapes = {name: array.shape for name, array in group.arrays()}
    except (OSError, ValueError, KeyError, TypeError, zarr.errors.BaseZarrError) as error:
        raise SoftformError(f"{path} is not a Zarr group that can be read: {error}", "Check the path.") from error
    if attributes.get("schema") != kind.schema or attributes.get("schema_version") != kind.version:
        raise SoftformError(
            f"{path} holds '{attributes.get('schema')}' version {attributes.get('schema_version')}, "
            f"not '{kind.schema}' version {kind.version}.",
            f"Give the path of a {kind.name}, or make one: {kind.command(robot)} --output NEW",
        )
    missing = [name for name in ("robot", "robot_fingerprint", *kind.attributes) if name not in attributes]
    if missing:
        raise SoftformError(f"The {kind.name} {path} lacks its {', '.join(missing)}.", "Make it again.")
    wrong = kind.misshapen(shapes)
    if wrong:
        raise SoftformError(
            f"Arrays of the {kind.name} {path} are missing or misshapen: {', '.join(sorted(set(wrong)))}.",
            "The store is damaged; make another one with --output.",
        )
    if robot is not None and (
        attributes["robot"] != robot.name
        or attributes["robot_fingerprint"] != robot.fingerprint()
        or shapes["actuation"][1] != robot.degrees_of_freedom
    ):
        raise SoftformError(
            f"The {kind.name} {path} was made for robot '{attributes['robot']}' "
            f"(description {attributes['robot_fingerprint']}), not for '{robot.name}' ({robot.fingerprint()}).",
            f"Give the path of the {kind.name} of '{robot.name}', or of one still to be made.",
        )
    return group


@contextmanager
def new_group(path: Path, kind: StoreKind, robot: Robot) -> Iterator[zarr.Group]:
    """Make a store's group, to be filled in the `with` block; it appears at `path` complete or not at all.

    Raises:
        SoftformError: If the disk is full or cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    with disk_errors(path, kind):
        partial.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        group = zarr.open_group(DurableFolder(partial), mode="w", zarr_format=3)
        group.attrs.update(
            {
                "schema": kind.schema,
                "schema_version": kind.version,
                "robot": robot.name,
                "robot_fingerprint": robot.fingerprint(),
            }
        )
        yield group
        sync(group)
        os.replace(partial, path)
        for folder in path.absolute().parents:  # any of them may be new
            sync_folder(folder)


@contextmanager
def disk_errors(path: Path, kind: StoreKind) -> Iterator[None]:
    """Turn a failed write into an error that says what is kept and how to go on."""
    try:
        yield
    except OSError as error:
        raise SoftformError(
            f"Writing the {kind.name} {path} failed: {error.strerror or error}.",
            "What was written so far is kept. Free disk space (or correct the permissions) and run the same command "
            "again; it continues.",
        ) from error
