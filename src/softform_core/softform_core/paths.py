"""Paths of configuration, models and data.

A checkout is found through `SOFTFORM_HOME` (set by `./softform`); an installed workspace through `AMENT_PREFIX_PATH`,
where `softform_bringup` installs `config/`, `models/` and `launch/` in its share directory. A user's own robots,
realities and models lie in the folders of `SOFTFORM_CONFIG_PATH` (as in `PATH`, with colons between them), each with
`config/robots`, `config/realities/KIND` and `models` as in the checkout; they come first.

The wheel of `softform_core` alone holds the shipped descriptions, and no models. There `models/`, `data/` and `runs/`
lie in the current folder.
"""

import os
from pathlib import Path

from softform_core.errors import SoftformError

DEFAULT_ROBOT = "membrane"
"""Default robot of commands and nodes."""


_SHIPPED = Path(__file__).resolve().parent / "shipped"
"""Copy of `config/` in the wheel; absent in a checkout and in an installed workspace."""


def home() -> Path:
    """Return the directory that holds `config/`, and in a checkout or workspace `models/` and `launch/`.

    Raises:
        SoftformError: If neither a checkout nor an installed workspace is found.
    """
    given = os.environ.get("SOFTFORM_HOME")
    installed = [prefix / "share" / "softform_bringup" for prefix in _folders_of("AMENT_PREFIX_PATH")]
    for candidate in [*([Path(given)] if given else []), *Path(__file__).resolve().parents, *installed, _SHIPPED]:
        if (candidate / "config" / "robots").is_dir():
            return candidate
    raise SoftformError(
        "The Softform configuration (config/robots) was not found.",
        "Start commands with ./softform from the checkout, or source the workspace's install/setup.sh.",
    )


def _written(place: Path) -> Path:
    """Return where to write what belongs to a place: nothing into an installed wheel."""
    return Path.cwd() if place == _SHIPPED else place


def _folders_of(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]


def config_dir() -> Path:
    """Return the directory of robot, reality and node descriptions."""
    return home() / "config"


def places() -> list[Path]:
    """Return directories that hold `config/` and `models/`: those of `SOFTFORM_CONFIG_PATH`, then `home`.

    Raises:
        SoftformError: If one of `SOFTFORM_CONFIG_PATH` does not exist.
    """
    own = [folder.expanduser().absolute() for folder in _folders_of("SOFTFORM_CONFIG_PATH")]
    for place in own:
        if not place.is_dir():
            raise SoftformError(
                f"SOFTFORM_CONFIG_PATH names {place}, which is no folder.", f"Make it: mkdir -p {place}/config/robots"
            )
    return [*own, home()]


def models_dir() -> Path:
    """Return the directory of the models that ship, one folder a robot; `models_of` is where a robot's are."""
    return _written(home()) / "models"


def models_of(robot: str) -> Path:
    """Return the folder of a robot's trained models: beside its `config/`, or where it has models already.

    A robot that is given by the path of its description has them in the first of `places`.
    """
    for place in places():
        if (place / "config" / "robots" / f"{robot}.yaml").is_file() or (place / "models" / robot).is_dir():
            return _written(place) / "models" / robot
    return _written(places()[0]) / "models" / robot


def launch_dir() -> Path:
    """Return the directory of the launch files."""
    return home() / "launch"


def data_dir() -> Path:
    """Return the directory of generated data (`SOFTFORM_DATA`, else `data/` beside `config/`)."""
    return Path(os.environ.get("SOFTFORM_DATA") or _written(home()) / "data").expanduser()


def runs_dir() -> Path:
    """Return the directory of reports, bags and scans (`SOFTFORM_RUNS`, else `runs/` beside `config/`)."""
    return Path(os.environ.get("SOFTFORM_RUNS") or _written(home()) / "runs").expanduser()


def _is_file(path: Path) -> bool:
    """Return whether there is such a file; there is none that may not be looked for, or has too long a name."""
    try:
        return path.is_file()
    except OSError:
        return False


def _described(kind: str, name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        if _is_file(path):
            return path
        raise SoftformError(f"The description {path} does not exist.", "Check the path.")
    for place in places():
        path = place / "config" / kind / f"{name_or_path}.yaml"
        if _is_file(path):
            return path
    raise SoftformError(
        f"There is no description '{name_or_path}' in config/{kind}.",
        f"Known: {', '.join(described_names(kind)) or 'none'}. A path to a .yaml file works too.",
    )


def described_names(kind: str) -> list[str]:
    """Return the names of the descriptions in `config/KIND` of all `places`."""
    return sorted({path.stem for place in places() for path in (place / "config" / kind).glob("*.yaml")})


def robot_file(name_or_path: str | Path) -> Path:
    """Return the description file of a robot, by its name in `config/robots` or by path.

    Raises:
        SoftformError: If there is none.
    """
    return _described("robots", name_or_path)


def reality_file(name_or_path: str | Path, kind: str) -> Path:
    """Return the description file of a virtual rig's reality: a name in `config/realities/KIND`, or a path.

    Raises:
        SoftformError: If there is none.
    """
    return _described(f"realities/{kind}", name_or_path)


def drawn_seed(reality: str | Path) -> int | None:
    """Return the seed of a reality that is drawn, given as `drawn:SEED`; None for one that a file describes.

    Raises:
        SoftformError: If the seed is no number from 0 on.
    """
    kind, colon, seed = str(reality).partition(":")
    if not colon or kind != "drawn":
        return None
    if not (seed.isascii() and seed.isdigit()):
        raise SoftformError(f"'{reality}' has no seed.", "Give a number, such as drawn:7.")
    return int(seed)


def check_reality(name_or_path: str | Path, kind: str) -> None:
    """Reject a reality that is neither described (`reality_file`) nor drawn (`drawn_seed`).

    Raises:
        SoftformError: If it is neither.
    """
    if drawn_seed(name_or_path) is None:
        reality_file(name_or_path, kind)
