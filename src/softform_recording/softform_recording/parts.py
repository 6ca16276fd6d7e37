"""Folders of a recording that went on: `<folder>`, `<folder>_2`, `<folder>_3`, …, and the files in them."""

import re
from pathlib import Path

from softform_core.errors import SoftformError
from softform_core.files import named


def part_folder(folder: Path, number: int) -> Path:
    """Return the folder of a recording's part, counted from 1."""
    if number == 1:
        return folder
    folder = named(folder)
    return folder.with_name(f"{folder.name}_{number}")


def part_folders(folder: Path) -> list[Path]:
    """Return a bag's folder and those in which its recording went on, in order."""
    parts = [folder]
    while (following := part_folder(folder, len(parts) + 1)).is_dir():
        parts.append(following)
    return parts


def files_of(folder: Path, *endings: str) -> list[Path]:
    """Return files of a folder whose names end so, in the order of the numbers in their names."""

    def order(file: Path) -> list[int | str]:
        return [int(word) if place % 2 else word for place, word in enumerate(re.split(r"(\d+)", file.name))]

    return sorted((file for file in folder.iterdir() if file.suffix in endings), key=order)


def reject_name_of_a_part(folder: Path) -> None:
    """Reject a recording that, or whose next part, could be taken for another recording's.

    Raises:
        SoftformError: If it could be.
    """
    if (following := part_folder(folder, 2)).exists():
        raise SoftformError(
            f"{following} is there, in which a recording into {folder} would go on.",
            "Choose another name, or remove it.",
        )
    folder = named(folder)
    beginning, _, number = folder.name.rpartition("_")
    if beginning and number.isdigit() and any(folder.with_name(beginning).glob("*.mcap")):
        raise SoftformError(
            f"{folder} would be taken for part {number} of the recording {folder.with_name(beginning)}.",
            "Choose another name.",
        )
