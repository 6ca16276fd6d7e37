"""Command `softform calibrate-cameras`: where the depth cameras stand, from points that they see."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from softform_core.cli.shared import PATH, robot_option
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.units import MM_PER_M

if TYPE_CHECKING:
    from softform_capture.depth_cameras.extrinsics import CameraExtrinsics


@click.command("calibrate-cameras")
@robot_option
@click.option("--points", "points_file", type=PATH, help="File of points identified by hand in the clouds.")
@click.option(
    "--camera", "cameras", multiple=True, metavar="NAME=TOPIC", help="Camera that sees the printed codes now."
)
@click.option("--sheet", type=click.Choice(["A4", "A3"]), default="A4", show_default=True, help="Which sheet it is.")
@click.option("--ruler-length", default=0.2, show_default=True, help="Length of its ruler as measured on paper, m.")
@click.option(
    "--sheet-pose",
    type=(float, float, float, float),
    default=(0.0, 0.0, 0.0, 0.0),
    show_default=True,
    metavar="X Y Z YAW",
    help="Where its cross lies in the robot's frame (m), and where its x axis points (rad); it lies level.",
)
@click.option("--namespace", default="softform", show_default=True, help="Of the cameras' topics.")
@click.option("--max-residual", default=0.003, show_default=True, help="Write nothing if a camera fits worse, m.")
@click.option("--output", type=PATH, help="[default: data/ROBOT/cameras.yaml]")
def calibrate_cameras(
    robot_name: str,
    points_file: Path | None,
    cameras: tuple[str, ...],
    sheet: str,
    ruler_length: float,
    sheet_pose: tuple[float, float, float, float],
    namespace: str,
    max_residual: float,
    output: Path | None,
) -> None:
    """Find where depth cameras stand, and keep it for the scanner.

    Corresponding points are either identified by hand in the clouds and written into a file (--points), or are the
    corners of the printed sheet of codes that every camera sees now (--camera; softform print-code makes the sheet).
    The closed-form rigid motion that brings them together is each camera's pose (paper 004, Sec. V-A).

    \b
    Examples:
      ./softform calibrate-cameras --camera left=left/depth/color/points --camera right=right/depth/color/points
      ./softform calibrate-cameras --points corners.yaml
    """  # noqa: D301 - click reads the escape as "keep these lines"
    from softform_capture.depth_cameras.calibration import default_calibration, made_calibration
    from softform_core.provenance import command_line

    if bool(points_file) == bool(cameras):
        raise SoftformError("Points or cameras are needed, and not both.", "Give --points FILE or --camera NAME=TOPIC.")
    robot = load_robot(robot_name, "surface")
    if points_file:
        found, streams = _from_file(points_file)
    else:
        found, streams = _from_sheet(_topics(cameras), sheet, ruler_length, sheet_pose, namespace)
    calibration = made_calibration(robot.name, command_line(), found, streams)
    _show(found)
    for name, camera in found.items():
        if not camera.residual <= max_residual:
            raise SoftformError(
                f"The points of camera {name} are {camera.residual * MM_PER_M:.1f} mm off, the worst is "
                f"'{camera.worst}' with {camera.largest * MM_PER_M:.1f} mm; nothing was written.",
                "Measure that point again, or allow more by --max-residual.",
            )
    path = output or default_calibration(robot.name)
    calibration.save(path)
    click.echo(f"{path}: give it to the scanner as camera_calibration, with source cameras")


def _from_file(path: Path) -> tuple[dict[str, "CameraExtrinsics"], dict[str, tuple[str, str]]]:
    import numpy as np

    from softform_capture.depth_cameras.calibration import load_correspondences
    from softform_capture.depth_cameras.extrinsics import register_cameras

    given = load_correspondences(path)
    places = {name: np.array(place) for name, place in given.places.items()}
    seen = {
        name: {point: np.array(place) for point, place in camera.points.items()}
        for name, camera in given.cameras.items()
    }
    found = register_cameras(seen, places)
    return found, {name: (camera.topic, camera.frame_id) for name, camera in given.cameras.items()}


def _from_sheet(
    topics: dict[str, str],
    sheet: str,
    ruler_length: float,
    pose: tuple[float, float, float, float],
    namespace: str,
) -> tuple[dict[str, "CameraExtrinsics"], dict[str, tuple[str, str]]]:
    import numpy as np
    from scipy.spatial.transform import Rotation

    from softform_capture.camera_tracker.code_sheet import SHEETS, CodeDetector
    from softform_capture.depth_cameras.extrinsics import register_cameras
    from softform_capture.depth_cameras.sheet_in_cloud import corners_in_clouds, listen, sheet_point

    if not np.isfinite([ruler_length, *pose]).all() or ruler_length <= 0.0:
        raise SoftformError("The sheet has no place or no size.", "Give finite --sheet-pose and --ruler-length, m.")
    detector = CodeDetector(SHEETS[sheet], ruler_length)
    heard = listen(topics, namespace)
    seen = {}
    for name, messages in heard.items():
        try:
            seen[name] = corners_in_clouds(messages, detector)
        except SoftformError as error:
            raise SoftformError(f"Camera {name}: {error.message}", error.next_step) from error
    corners = SHEETS[sheet].corners(ruler_length).reshape(-1, 3)
    turned = Rotation.from_rotvec([0.0, 0.0, pose[3]]).apply(corners) + pose[:3]
    places = {sheet_point(corner): place for corner, place in zip(corners, turned, strict=True)}
    frames = {name: messages[-1].header.frame_id for name, messages in heard.items()}
    return register_cameras(seen, places), {name: (topic, frames[name]) for name, topic in topics.items()}


def _topics(cameras: tuple[str, ...]) -> dict[str, str]:
    topics = dict(camera.partition("=")[::2] for camera in cameras)
    if len(topics) < len(cameras) or not all(name and topic for name, topic in topics.items()):
        raise SoftformError(f"Cameras {', '.join(cameras)} are not names with topics.", "Give NAME=TOPIC for each.")
    return topics


def _show(found: dict[str, "CameraExtrinsics"]) -> None:
    click.echo("camera        points   residual  largest")
    for name, camera in found.items():
        residual, largest = camera.residual * MM_PER_M, camera.largest * MM_PER_M
        click.echo(f"{name:<12}{camera.points:>8}{residual:>8.2f} mm{largest:>7.2f} mm  at {camera.worst}")
