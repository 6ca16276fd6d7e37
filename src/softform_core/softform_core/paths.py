"""Where configuration, models and data lie.

A checkout is found through `SOFTFORM_HOME` (set by `./softform`); an installed workspace through `AMENT_PREFIX_PATH`,
where `softform_bringup` installs `config/`, `models/` and `launch/` in its share directory.
"""

import os
from pathlib import Path

from softform_core.errors import SoftformError


def home() -> Path:
    """Directory that holds `config/`, `models/` and `launch/`.

    Raises:
        SoftformError: If neither a checkout nor an installed workspace is found.
    """
    candidates = []
    if os.environ.get("SOFTFORM_HOME"):
        candidates.append(Path(os.environ["SOFTFORM_HOME"]))
    candidates += list(Path(__file__).resolve().parents)
    candidates += [
        Path(prefix) / "share" / "softform_bringup"
        for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
        if prefix
    ]
    for candidate in candidates:
        if (candidate / "config" / "robots").is_dir():
            return candidate
    raise SoftformError(
        "The Softform configuration (config/robots) was not found.",
        "Start commands with ./softform from the checkout, or source the workspace's install/setup.sh.",
    )


def config_dir() -> Path:
    """Directory of robot, reality and node descriptions."""
    return home() / "config"


def models_dir() -> Path:
    """Directory of trained models, one folder a robot."""
    return home() / "models"


def launch_dir() -> Path:
    """Directory of the launch files."""
    return home() / "launch"


def data_dir() -> Path:
    """Directory of generated data (`SOFTFORM_DATA`, else `data/` beside `config/`)."""
    return Path(os.environ.get("SOFTFORM_DATA") or home() / "data")


def runs_dir() -> Path:
    """Directory of what runs write: reports, bags, scans (`SOFTFORM_RUNS`, else `runs/` beside `config/`)."""
    return Path(os.environ.get("SOFTFORM_RUNS") or home() / "runs")


def _described(kind: str, name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        if path.is_file():
            return path
        raise SoftformError(f"The description {path} does not exist.", "Check the path.")
    folder = config_dir() / kind
    path = folder / f"{name_or_path}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml"))) or "none"
        raise SoftformError(
            f"There is no description '{name_or_path}' in config/{kind}.",
            f"Known: {known}. A path to a .yaml file works too.",
        )
    return path


def robot_file(name_or_path: str | Path) -> Path:
    """Description file of a robot, by its name in `config/robots` or by path.

    Raises:
        SoftformError: If there is none.
    """
    return _described("robots", name_or_path)


def reality_file(name_or_path: str | Path, kind: str) -> Path:
    """Description file of a virtual rig's reality.

    Args:
        name_or_path: By its name in `config/realities/KIND`, or by path.
        kind: Kind of the robot's body.

    Raises:
        SoftformError: If there is none.
    """
    return _described(f"realities/{kind}", name_or_path)
