"""A picture of which channel of which board feeds which chamber of a robot, from the robot's description."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Ellipse, Rectangle

from softform_core.robots import Robot
from softform_core.robots.body import Outline
from softform_pneumatics.boards.lines import CHANNELS

_FREE = "0.85"
_MILLIMETRES = 1e3


def draw_channel_map(robot: Robot, path: Path) -> None:
    """Draw each board's ten channels above the robot's chambers in the colours of their channels, and save the picture.

    Raises:
        OSError: If the picture cannot be written.
    """
    outlines = robot.body.outlines()
    panels = list(dict.fromkeys(outline.panel for outline in outlines))
    devices = [device for device in robot.devices if device.channels]
    boards = len(devices)
    figure = plt.figure(figsize=(max(6.0, 3.2 * len(panels)), 4.2 + 1.2 * boards), layout="constrained")
    grid = figure.add_gridspec(boards + 1, len(panels), height_ratios=[*boards * [1], 3.4])
    feeds: dict[str, tuple[int, int]] = {}
    for row, device in enumerate(devices):
        chamber_of = {
            channel: robot.actuators[index]
            for index, channel in zip(robot.served_by(device), device.channels, strict=True)
        }
        feeds |= {chamber: (row, channel) for channel, chamber in chamber_of.items()}
        _draw_board(figure.add_subplot(grid[row, :]), row, device.name if boards > 1 else "OpenPneu", chamber_of)
    for column, panel in enumerate(panels):
        axes = figure.add_subplot(grid[boards, column])
        axes.set_title(panel, fontsize=9)
        for chamber, outline in zip(robot.actuators, outlines, strict=True):
            if outline.panel == panel:
                row, channel = feeds[chamber]
                label = f"{devices[row].name} {channel}" if boards > 1 else f"{channel}"
                _draw_chamber(axes, f"{chamber}\n← {label}", _colour(row, channel), outline)
        axes.set_aspect("equal")
        axes.autoscale_view()
        axes.margins(0.05)
        axes.set_xlabel("mm", fontsize=8)
        axes.tick_params(labelsize=7)
    figure.suptitle(f"{robot.title}\nwhich channel of the board feeds which chamber", fontsize=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _colour(board: int, channel: int) -> tuple[float, float, float, float]:
    return plt.get_cmap("tab20")((2 * channel + board) % 20)  # ten colours, and for another board their light ones


def _draw_board(axes: Axes, board: int, name: str, chamber_of: Mapping[int, str]) -> None:
    for channel in range(CHANNELS):
        colour = _colour(board, channel) if channel in chamber_of else _FREE
        axes.add_patch(Circle((channel, 0.0), 0.36, facecolor=colour, edgecolor="0.2"))
        axes.text(channel, 0.0, str(channel), ha="center", va="center", fontsize=11, fontweight="bold")
        axes.text(channel, -0.75, chamber_of.get(channel, "free"), ha="center", va="center", fontsize=9)
        sensor = "±100" if channel % 2 == 0 else "0…100"
        axes.text(channel, 0.62, sensor, ha="center", va="center", fontsize=7, color="0.4")
    axes.text(-0.8, 0.62, f"{name}, kPa", ha="right", va="center", fontsize=7, color="0.4")
    axes.text(-0.8, 0.0, "channel", ha="right", va="center", fontsize=9)
    axes.text(-0.8, -0.75, "chamber", ha="right", va="center", fontsize=9)
    axes.set_xlim(-2.4, CHANNELS)
    axes.set_ylim(-1.1, 0.95)
    axes.set_aspect("equal")
    axes.axis("off")


def _draw_chamber(axes: Axes, label: str, colour: tuple[float, float, float, float], outline: Outline) -> None:
    x, y, width, height = (_MILLIMETRES * value for value in outline[2:])
    corner = (x - width / 2.0, y - height / 2.0)
    patch = Ellipse((x, y), width, height) if outline.shape == "ellipse" else Rectangle(corner, width, height)
    patch.set_facecolor(colour)
    patch.set_edgecolor("0.2")
    axes.add_patch(patch)
    axes.text(x, y, label, ha="center", va="center", fontsize=9)
