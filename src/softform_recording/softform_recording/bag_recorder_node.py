"""Life-cycle node `bag_recorder`: records topics of the stack into a bag; `TopicRecorder` does the work."""

from pathlib import Path

from rclpy.executors import SingleThreadedExecutor

from softform_core.run_folder import free_bag_folder
from softform_recording.topic_recorder import TopicRecorder
from softform_ros.diagnostics import Health
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("topics", [""], "Topics to record, relative to the namespace or absolute."),
    Parameter("bag", "", "Bag folder, which must not exist; by default DATE-TIME in parent_folder."),
    Parameter("parent_folder", "", "Where such folders are made; by default `bags` in the folder of runs."),
    Parameter("largest_bag", 1024, "Size after which the recording goes on in a new folder, MB; 0: never.", 0, 1 << 20),
    Parameter("longest_bag", 0.0, "Time after which it does so, s; 0: never.", 0.0, 1e6),
)


class BagRecorderNode(SoftformLifecycleNode):
    """Records while it is active, each time into a bag of its own."""

    may_use_sim_time = True

    def __init__(self) -> None:
        super().__init__("bag_recorder", PARAMETERS)
        self._recorder: TopicRecorder | None = None

    def activate(self) -> None:
        """Begin a bag."""
        given = self.parameters
        folder = Path(given["bag"]) if given["bag"] else free_bag_folder(given["parent_folder"])
        largest_bag, longest_bag = given["largest_bag"] * 1_000_000, given["longest_bag"]
        self._recorder = TopicRecorder(self, given["topics"], folder, largest_bag, longest_bag)

    def deactivate(self) -> None:
        """Close the bag."""
        if self._recorder:
            recorder, self._recorder = self._recorder, None
            counts = recorder.close()
            say = self.get_logger().info if counts.is_complete else self.get_logger().error
            say(f"{counts.written} messages are in {recorder.folders[-1]}; {counts.shortcomings or 'none is missing'}")

    def health(self) -> Health:
        """Return the state of the recording."""
        return self._recorder.health() if self._recorder else super().health()


def main() -> None:
    """Record until SIGINT or SIGTERM."""
    run_node(BagRecorderNode, SingleThreadedExecutor)
