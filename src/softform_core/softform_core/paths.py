"""Where configuration, models and data lie.

A checkout is found through `SOFTFORM_HOME` (set by `./softform`); an installed workspace through `AMENT_PREFIX_PATH`,
where `softform_bringup` installs `config/`, `models/` and `launch/` in its share directory. A user's own robots,
realities and models lie in the folders of `SOFTFORM_CONFIG_PATH` (as in `PATH`, with colons between them), each with
`config/robots`, `config/realities/KIND` and `models` as in the checkout; they come first.
"""

import os
from pathlib import Path

from softform_core.errors import SoftformError

DEFAULT_ROBOT = "membrane"
"""Robot of commands and nodes to which none is given."""


def home() -> Path:
    """Directory that holds `config/`, `models/` and `launch/`.

    Raises:
        SoftformError: If neither a checkout nor an installed workspace is found.
    """
    given = os.environ.get("SOFTFORM_HOME")
    installed = [prefix / "share" / "softform_bringup" for prefix in _folders_of("AMENT_PREFIX_PATH")]
    for candidate in [*([Path(given)] if given else []), *Path(__file__).resolve().parents, *installed]:
        if (candidate / "config" / "robots").is_dir():
            return candidate
    raise SoftformError(
        "The Softform configuration (config/robots) was not found.",
        "Start commands with ./softform from the checkout, or source the workspace's install/setup.sh.",
    )


def _folders_of(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]


def config_dir() -> Path:
    """Directory of robot, reality and node descriptions."""
    return home() / "config"


def places() -> list[Path]:
    """Directories that hold `config/` and `models/`: those of `SOFTFORM_CONFIG_PATH`, then `home`.

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
    """Directory of the models that ship, one folder a robot; `models_of` is where a robot's are."""
    return home() / "models"


def models_of(robot: str) -> Path:
    """Folder of a robot's trained models: beside the `config/` that describes it, or where it has models already.

    A robot that is given by the path of its description has them in the first of `places`.
    """
    for place in places():
        if (place / "config" / "robots" / f"{robot}.yaml").is_file() or (place / "models" / robot).is_dir():
            return place / "models" / robot
    return places()[0] / "models" / robot


def launch_dir() -> Path:
    """Directory of the launch files."""
    return home() / "launch"


def data_dir() -> Path:
    """Directory of generated data (`SOFTFORM_DATA`, else `data/` beside `config/`)."""
    return Path(os.environ.get("SOFTFORM_DATA") or home() / "data").expanduser()


def runs_dir() -> Path:
    """Directory of what runs write: reports, bags, scans (`SOFTFORM_RUNS`, else `runs/` beside `config/`)."""
    return Path(os.environ.get("SOFTFORM_RUNS") or home() / "runs").expanduser()


def _described(kind: str, name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        if path.is_file():
            return path
        raise SoftformError(f"The description {path} does not exist.", "Check the path.")
    for place in places():
        path = place / "config" / kind / f"{name_or_path}.yaml"
        if path.is_file():
            return path
    raise SoftformError(
        f"There is no description '{name_or_path}' in config/{kind}.",
        f"Known: {', '.join(described_names(kind)) or 'none'}. A path to a .yaml file works too.",
    )


def described_names(kind: str) -> list[str]:
    """Names of the descriptions in `config/KIND` of all `places`."""
    return sorted({path.stem for place in places() for path in (place / "config" / kind).glob("*.yaml")})


def robot_file(name_or_path: str | Path) -> Path:
    """Description file of a robot, by its name in `config/robots` or by path.

    Raises:
        SoftformError: If there is none.
    """
    return _described("robots", name_or_path)


def reality_file(name_or_path: str | Path, kind: str) -> Path:
    """Description file of a virtual rig's reality: a name in `config/realities/KIND`, or a path.

    Raises:
        SoftformError: If there is none.
    """
    return _described(f"realities/{kind}", name_or_path)


def drawn_seed(reality: str | Path) -> int | None:
    """Seed of a reality that is drawn, given as `drawn:SEED`; None of one that a file describes.

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
