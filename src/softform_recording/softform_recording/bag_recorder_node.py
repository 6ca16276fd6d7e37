"""The node that records topics of the stack into a bag: parameters and diagnostics; `TopicRecorder` does the work."""

from pathlib import Path

from rclpy.executors import SingleThreadedExecutor

from softform_core.run_folder import free_bag_folder
from softform_recording.topic_recorder import TopicRecorder
from softform_ros.diagnostics import OK, DiagnosticsPublisher, Health
from softform_ros.guarded_node import GuardedNode
from softform_ros.lifecycle import run_node
from softform_ros.parameters import Parameter, declare_parameters, read_parameters

PARAMETERS = (
    Parameter("topics", [""], "Topics to record, relative to the namespace or absolute."),
    Parameter("bag", "", "Bag folder, which must not exist; by default DATE-TIME in parent_folder."),
    Parameter("parent_folder", "", "Where such folders are made; by default `bags` in the folder of runs."),
    Parameter("largest_bag", 1024, "Size after which the recording goes on in a new folder, MB; 0: never.", 0, 1 << 20),
    Parameter("longest_bag", 0.0, "Time after which it does so, s; 0: never.", 0.0, 1e6),
)


class BagRecorderNode(GuardedNode):
    """Records from its start to its end."""

    def __init__(self) -> None:
        super().__init__("bag_recorder")
        self._recorder: TopicRecorder | None = None
        declare_parameters(self, PARAMETERS)
        parameters = read_parameters(self, PARAMETERS)
        folder = Path(parameters["bag"]) if parameters["bag"] else free_bag_folder(parameters["parent_folder"])
        largest_bag, longest_bag = parameters["largest_bag"] * 1_000_000, parameters["longest_bag"]
        self._recorder = TopicRecorder(self, parameters["topics"], folder, largest_bag, longest_bag)
        self._diagnostics = DiagnosticsPublisher(self, str(folder), self._health)

    def destroy_node(self) -> None:
        """Close the bag, then the node."""
        if self._recorder:
            recorder, self._recorder = self._recorder, None
            counts = recorder.close()
            say = self.get_logger().info if counts.is_complete else self.get_logger().error
            say(f"{counts.written} messages are in {recorder.folders[-1]}; {counts.shortcomings or 'none is missing'}")
        super().destroy_node()

    def _health(self) -> Health:
        return self._recorder.health() if self._recorder else Health(OK, "closed")


def main() -> None:
    """Record until SIGINT or SIGTERM."""
    run_node(BagRecorderNode, SingleThreadedExecutor)
