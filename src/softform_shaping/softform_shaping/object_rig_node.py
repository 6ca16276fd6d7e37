"""Node `object_rig`: the emulated object between the arms and the camera that looks at it, by what the driver measures.

It stands in for an object and a camera of the laboratory, and tells what nobody there knows: where the object truly is.
"""

import time
from contextlib import ExitStack

import numpy as np
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Header

from softform_client.driver_watch import DriverWatch
from softform_core.errors import SoftformError
from softform_core.periodic import PeriodicThread
from softform_core.text import printable
from softform_core.threads import one_thread
from softform_interfaces.msg import DriverState
from softform_interfaces.srv import InjectFault
from softform_ros.conversions import cloud_from_points, stamp_from_seconds
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.frames import StaticFrames
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter
from softform_ros.qos import LATCHED_STATE, TRUE_SURFACE
from softform_shaping.arms_of import arms_of, object_of
from softform_shaping.object_faults import CAMERA_LOST, checked_fault, spoilt
from softform_shaping.pictures import camera_info, image_messages
from softform_shaping.preparation import prepared
from softform_shaping.scene import Scene, make_scene

PARAMETERS = (
    Parameter("robot", "", "Arms, and the object that they hold: the path of a description, as `config/arms` has."),
    Parameter("seed", 0, "Of what is drawn: the camera's pose and noise, and where the object is stiff.", 0, 1 << 31),
    Parameter("camera_rate", 4.0, "Pictures a second, while somebody looks, Hz.", 0.2, 30.0),
)

_MOVED = 2e-4
"""rad by which a joint has to move until the object is solved for anew."""
_STATE_TIMEOUT = 1.0
_PATIENCE = 5.0


class ObjectRigNode(SoftformLifecycleNode):
    """Leads the object with the measured joints, in a thread of its own, and publishes what is seen."""

    def __init__(self) -> None:
        super().__init__("object_rig", PARAMETERS, hardware_id="virtual object")
        self._colour = self.create_publisher(Image, "camera/color/image_raw", TRUE_SURFACE)
        self._depth = self.create_publisher(Image, "camera/aligned_depth_to_color/image_raw", TRUE_SURFACE)
        self._info = self.create_publisher(CameraInfo, "camera/color/camera_info", TRUE_SURFACE)
        self._truth = self.create_publisher(PointCloud2, "rig/true_object", TRUE_SURFACE)
        self._places = StaticFrames(self)
        self._thread: PeriodicThread | None = None
        self._pictures, self._failure, self._fault = 0, "", ""
        self.create_service(InjectFault, "object_rig/inject_fault", self._inject)

    def configure(self) -> None:
        """Make the object and the camera, and listen to the driver."""
        given = self.parameters
        robot, name = object_of(given["robot"])
        self._robot = robot.in_namespace(self.get_namespace())
        described, model, _ = prepared(name)
        self._arms = arms_of(self._robot, described)
        with one_thread():
            self._scene = make_scene(described, model, given["seed"])
        self._joints = self._arms.joints.ravel()
        self._camera = self._robot.frame_of("camera")
        self._places.tell(self._robot.base_frame, self._camera, self._scene.believed)
        self._driver = DriverWatch(self._robot, _STATE_TIMEOUT)
        heard = self.opened.enter_context(ExitStack())
        self._driver.listen(self, heard)
        self.subscribe(DriverState, "driver_state", self._note_driver, LATCHED_STATE)
        self.get_logger().info(f"object '{described.name}': {described.title}")

    def _note_driver(self, message: DriverState) -> None:
        self._driver.note_driver(message)

    def activate(self) -> None:
        """Begin to look."""
        self._pictures, self._failure = 0, ""
        self._thread = PeriodicThread("camera", 1.0 / self.parameters["camera_rate"], self._look)
        self._thread.start()

    def deactivate(self) -> None:
        """Look no more."""
        if self._thread is not None:
            self._thread.stop(_PATIENCE)
            self._thread = None

    def health(self) -> Health:
        """Return how many pictures were taken, and whether the object follows the grippers."""
        slipped = bool(self._scene.truth.slipped.any())
        values = {"pictures": self._pictures, "slipped": slipped, "fault that is on": self._fault or "none"}
        if self._thread is not None and self._thread.failure:
            return Health(ERROR, self._thread.failure, values)
        return Health(WARN if self._failure else OK, self._failure or "the object is held", values)

    def _inject(self, request: InjectFault.Request, response: InjectFault.Response) -> InjectFault.Response:
        """Let something go wrong from the next picture on; the answer says why it was rejected."""
        try:
            self._fault = checked_fault(printable(request.fault))
            response.success = True
            self.get_logger().info(f"fault: {self._fault or 'none any more'}")
        except SoftformError as error:
            response.message = str(error)
        return response

    def _look(self) -> None:
        """Lead the object to where the arms are now, and publish what the camera sees, and the truth."""
        is_watched = self._colour.get_subscription_count() > 0 or self._depth.get_subscription_count() > 0
        if not is_watched and not self._truth.get_subscription_count():
            return
        scene, values, fault = self._scene, self._driver.values, self._fault
        stamp = stamp_from_seconds(time.time())
        if values is None:
            return
        with one_thread():
            if np.abs(values - self._joints).max() > _MOVED:
                try:
                    scene.truth.move(self._arms.poses_at(values.reshape(2, -1)))
                    self._joints, self._failure = values, ""
                except SoftformError as error:
                    self._failure = str(error)
                    return  # what is seen would be of another moment
            if is_watched and fault != CAMERA_LOST:
                self._show(scene, fault, Header(stamp=stamp, frame_id=self._camera))
        if fault not in ("", CAMERA_LOST):
            return  # where the object of the description would be is not the truth any more
        truth = np.where(scene.truth.has[:, None], scene.truth.nodes, np.nan)
        self._truth.publish(cloud_from_points(truth, self._robot.base_frame, stamp))

    def _show(self, scene: Scene, fault: str, header: Header) -> None:
        picture = scene.camera.look(spoilt(fault, scene.solids()), scene.random)
        colour, depth = image_messages(picture, header)
        self._info.publish(camera_info(scene.intrinsics, header))
        self._depth.publish(depth)
        self._colour.publish(colour)
        self._pictures += 1


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(ObjectRigNode)


if __name__ == "__main__":
    main()
