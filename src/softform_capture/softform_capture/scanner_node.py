"""Life-cycle node `scanner`: exports of a watched folder, or clouds of depth cameras, become `captured_cloud`."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from threading import Lock

from rclpy.subscription import Subscription
from sensor_msgs.msg import PointCloud2

from softform_capture.depth_cameras.calibration import SECONDS_PER_DAY, default_calibration, load_calibration
from softform_capture.depth_cameras.cloud_watcher import CloudWatcher
from softform_capture.depth_cameras.merging import CloudMerger, MergedCloud
from softform_capture.scanner.captured_cloud import (
    WORKSPACES,
    CapturedCloud,
    CloudOptions,
    captured_cloud,
    cloud_on_robot,
)
from softform_capture.scanner.folder_source import FolderSource, FolderWatcher, RejectedFile, ScanFile
from softform_capture.scanner.scan_quality import rest_area
from softform_capture.scanner.scan_record import ScanRecord
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.heap import give_back_what_is_free
from softform_core.paths import DEFAULT_ROBOT
from softform_core.registration.scanner_pose import NotRegisteredError, ScannerPlace, scanner_place
from softform_core.robots import load_robot
from softform_core.shapes.read import UNITS
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorState
from softform_ros.conversions import NORMAL_FIELDS, cloud_from_points, stamp_from_seconds
from softform_ros.diagnostics import OK, Health
from softform_ros.frames import StaticFrames
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter
from softform_ros.qos import ACTUATOR_STATE_READER, CAMERA_INPUT, CAPTURED_CLOUD

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT,
        "Robot that is scanned: a name in `config/robots`, or the path of a description."),
    Parameter("source", "folder", "Where scans come from: exports in a folder, or depth cameras.",
        choices=("folder", "cameras")),
    Parameter("watch_folder", "", "Folder where the scanner's software writes PLY, OBJ, STL, PCD or XYZ exports."),
    Parameter("unit", "mm", "Unit of the exports' coordinates.", choices=UNITS),
    Parameter("scanner_pose", "",
        "Where the scanner stands: a name that `./softform register` kept; or a file (.txt, .json, .yaml) of, or the "
        "numbers of, a pose or a 4 x 4 matrix. Empty: `registration`."),
    Parameter("registration", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        "Pose of the scanner's frame in the robot's: x, y, z (m), qx, qy, qz, qw; or the 4 x 4 matrix, row by row."),
    Parameter("poll_period", 0.2, "Time between two looks into the folder, s.", 0.02, 10.0),
    Parameter("camera_calibration", "",
        "Cameras: file of `./softform calibrate-cameras`; empty for `data/ROBOT/cameras.yaml`."),
    Parameter("max_calibration_residual", 0.003, "Cameras: a worse calibration is rejected, m.", 1e-5, 0.1),
    Parameter("max_calibration_age", 30.0, "Cameras: an older calibration is rejected, days.", 0.01, 3650.0),
    Parameter("merge_period", 0.5, "Cameras: time between two merged clouds at least, s.", 0.02, 60.0),
    Parameter("max_stamp_gap", 0.1, "Cameras: largest time between clouds that are merged, s.", 0.001, 10.0),
    Parameter("max_disagreement", 0.005, "Cameras: clouds that lie further apart are rejected, m.", 1e-4, 0.1),
    Parameter("crop", True, "Whether points outside the robot's workspace are dropped."),
    Parameter("workspace", "box", "Its form: a box around the body's shapes, or the hemisphere of paper 004.",
        choices=WORKSPACES),
    Parameter("crop_margin", 0.02, "Room around the robot within the workspace, m.", 0.0, 1.0),
    Parameter("spacing", 0.0, "One point stays in every cube of this side, m; 0 keeps all.", 0.0, 0.1),
    Parameter("remove_outliers", True, "Whether points that belong to no surface are dropped."),
    Parameter("max_points", 50_000, "A larger scan is thinned to this many points.", 1_000, 2_000_000),
    Parameter("normals", False, "Whether the clouds have normals, upwards, as fields normal_x, normal_y, normal_z."),
    Parameter("least_coverage", 0.5, "Scans that show less of the robot than this share make the node warn.", 0.0, 1.0),
    Parameter("stale_after", 10.0, "Without a scan for this long the node warns, s.", 0.1, 86_400.0),
)  # fmt: skip


_LONGEST_SILENCE = 3.0  # s, of a camera


class ScannerNode(SoftformLifecycleNode):
    """Publishes every new scan of the robot, in its frame, stamped with the time of capture."""

    def __init__(self) -> None:
        super().__init__("scanner", PARAMETERS, hardware_id="scanner")
        self._publisher = self.create_publisher(PointCloud2, "captured_cloud", CAPTURED_CLOUD)
        self._places = StaticFrames(self)
        self._watcher: FolderWatcher | CloudWatcher | None = None
        self._camera_subscriptions: list[Subscription] = []
        self._lock = Lock()

    def configure(self) -> None:
        """Load the robot and check the source: folder, unit and registration, or the cameras' calibration."""
        values = self.parameters
        self._robot = load_robot(values["robot"], "surface").in_namespace(self.get_namespace())
        self._robot.body.prepare()
        rest_area(self._robot)  # now, as it takes a second
        self._actuation = self._robot.rest_actuation
        self._options = CloudOptions(**{one.name: values[one.name] for one in fields(CloudOptions)})
        if values["source"] == "cameras":
            self._configure_cameras()
        else:
            self._configure_folder()

    def _configure_folder(self) -> None:
        values = self.parameters
        if not values["watch_folder"]:
            raise SoftformError(
                "Parameter watch_folder is empty.", "Set it to the folder where the scanner writes its exports."
            )
        self._place: ScannerPlace | None = None
        if values["scanner_pose"]:  # a hand-held scanner's scans are aligned by what the robot is commanded
            states = self.create_subscription(
                ActuatorState, "actuator_state", self._on_actuator_state, ACTUATOR_STATE_READER
            )
            self.opened.callback(self.destroy_subscription, states)
        try:
            self._known_place()
        except NotRegisteredError as error:  # it may be registered by what this node's folder holds
            self.get_logger().warning(str(error))
        self._source = FolderSource(Path(values["watch_folder"]).expanduser(), values["unit"])

    def _known_place(self) -> ScannerPlace:
        """Return the scanner's place, and publish it on TF once it is known.

        Raises:
            SoftformError: If that is not known, or no pose.
        """
        if self._place is None:
            given, robot = self.parameters["scanner_pose"], self._robot
            own = ScannerPlace(robot, RigidTransform.from_pose(self.parameters["registration"]))
            self._place = scanner_place(given, robot) if given else own
            if self._place.pose is not None:
                self._places.tell(robot.base_frame, robot.frame_of("scanner"), self._place.pose)
        return self._place

    def _on_actuator_state(self, message: ActuatorState) -> None:
        self._actuation = self._robot.nearest_actuation(self._robot.in_order(message.name, message.value))

    def _configure_cameras(self) -> None:
        values = self.parameters
        path = Path(values["camera_calibration"] or default_calibration(self._robot.name)).expanduser()
        self._calibration = load_calibration(path)
        longest_age = values["max_calibration_age"] * SECONDS_PER_DAY
        self._calibration.check(self._robot.name, values["max_calibration_residual"], longest_age)
        self.frames.listen()

    def activate(self) -> None:
        """Start watching."""
        if self.parameters["source"] == "cameras":
            self._watch_cameras()
        else:
            self._watch_folder()

    def _watch_folder(self) -> None:
        self._record = ScanRecord(f"is {self._source.folder} the right folder?")
        if self._source.folder.is_dir() and (skipped := self._source.skip_existing()):
            self.get_logger().info(f"passing over {skipped} older exports in {self._source.folder}")
        self._watcher = FolderWatcher(
            self._source, self.parameters["poll_period"], self._on_scan, self._on_rejected, self._on_fault
        )
        self._watcher.start()

    def _watch_cameras(self) -> None:
        values, cameras = self.parameters, self._calibration.cameras
        self._record = ScanRecord("do the cameras see the robot?", needs_source=True)
        merger = CloudMerger(
            self._calibration, self._robot, self._options, values["max_stamp_gap"], values["max_disagreement"]
        )
        self._watcher = watcher = CloudWatcher(
            merger,
            list(cameras),
            values["merge_period"],
            _LONGEST_SILENCE,
            self._on_merged,
            lambda reason: self._on_rejected(RejectedFile(Path("clouds"), reason)),
            self._on_fault,
        )
        self._camera_subscriptions = [
            self.create_subscription(PointCloud2, camera.topic, partial(watcher.take, name), CAMERA_INPUT)
            for name, camera in cameras.items()
        ]
        self._not_announced = list(cameras)
        watcher.start()

    def deactivate(self) -> None:
        """Stop watching."""
        for subscription in self._camera_subscriptions:
            self.destroy_subscription(subscription)
        self._camera_subscriptions = []
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def health(self) -> Health:
        """Return the age and quality of the last scan, and what was rejected and why."""
        if not self.is_active:
            return Health(OK, "inactive")
        values: dict[str, object] = {"source": self.parameters["source"]}
        if self.parameters["source"] == "cameras":
            values["cameras"] = ", ".join(self._calibration.cameras)
            values["calibration_age_days"] = f"{self._calibration.age / SECONDS_PER_DAY:.1f}"
            worst = max(camera.residual for camera in self._calibration.cameras.values())
            values["calibration_residual_mm"] = f"{worst * MM_PER_M:.2f}"
        else:
            values["watch_folder"] = self._source.folder
        with self._lock:
            return self._record.health(values, self.parameters["stale_after"], self.parameters["least_coverage"])

    def _on_scan(self, scan: ScanFile) -> None:
        place = self._known_place()
        placed = partial(place.placed, actuation=self._actuation)
        cloud = captured_cloud(scan.shape, placed, self._robot, self._options)
        self._publish(scan.path.name, cloud, scan.captured_at, {})

    def _on_merged(self, merged: MergedCloud) -> None:
        cloud = cloud_on_robot(merged.points, self._robot, self._options)
        disagreement = {"disagreement_mm": f"{merged.disagreement * MM_PER_M:.2f}"}
        self._publish(" + ".join(self._calibration.cameras), cloud, merged.captured_at, disagreement)
        self._tell_cameras()

    def _tell_cameras(self) -> None:
        """Publish the poses of the cameras to TF once they have published their own frames."""
        while self._not_announced:
            camera = self._calibration.cameras[self._not_announced.pop()]
            base, known = self._robot.base_frame, self.frames.listen()
            try:
                self._places.tell_camera(base, camera.frame_id, camera.registration(), known)
            except SoftformError as error:
                self.get_logger().warning(f"The pose of '{camera.frame_id}' is not published to TF: {error}")

    def _publish(self, name: str, cloud: CapturedCloud, captured_at: float, figures: dict[str, str]) -> None:
        normals = {} if cloud.normals is None else dict(zip(NORMAL_FIELDS, cloud.normals.T, strict=True))
        stamp = stamp_from_seconds(captured_at)
        self._publisher.publish(cloud_from_points(cloud.points, self._robot.base_frame, stamp, normals))
        with self._lock:
            self._record.note(name, len(cloud.points), captured_at, cloud.quality, figures)
        give_back_what_is_free()

    def _on_rejected(self, rejected: RejectedFile) -> None:
        with self._lock:
            is_news = self._record.reject(rejected.path.name, rejected.reason)
        if is_news:
            self.get_logger().warning(f"rejected {rejected.path.name}: {rejected.reason}")

    def _on_fault(self, fault: str) -> None:
        with self._lock:
            is_news, self._record.fault = fault != self._record.fault, fault
        if fault and is_news:
            self.get_logger().warning(fault)


def main() -> None:
    """Run the node until it is asked to stop."""
    run_node(ScannerNode)


if __name__ == "__main__":
    main()
