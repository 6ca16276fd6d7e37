"""Options that commands of several packages have."""

from pathlib import Path

import click

from softform_core.paths import DEFAULT_ROBOT

PATH = click.Path(path_type=Path)
"""Type of an option that names a file or folder."""

robot_option = click.option(
    "--robot", "robot_name", default=DEFAULT_ROBOT, show_default=True, help="Name in config/robots, or a .yaml."
)
