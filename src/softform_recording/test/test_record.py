"""`softform record` as it is called: what it rejects before it begins, and what it says of what is not in the bag."""

import json

import pytest
from click.testing import CliRunner
from std_msgs.msg import String

from softform_core.errors import SoftformError
from softform_recording.bag_recorder import BagRecorder
from softform_recording.cli_record import record
from softform_recording.record import background_recording
from softform_ros.background_node import BackgroundNode
from softform_ros.diagnostics import ERROR


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--namespace", "soft-form"], "'/soft-form' is no namespace"),
        (["--topics", "pressure state"], "'pressure state' is no name of a topic"),
    ],
)
def test_names_that_ros_does_not_take_are_rejected_and_leave_no_bag(tmp_path, arguments, why):
    result = CliRunner().invoke(record, [*arguments, "--output", str(tmp_path / "walk"), "--duration", "1"])
    assert isinstance(result.exception, SoftformError) and why in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_a_topic_that_cannot_be_recorded_is_an_error(tmp_path, monkeypatch):
    """As where a publisher's package is not installed here; the other topics are recorded."""
    add_topic = BagRecorder.add_topic

    def reject_one(self, topic, *arguments):
        if topic.endswith("strange"):
            raise SoftformError("'lab_msgs' is not installed.", "Install it.")
        add_topic(self, topic, *arguments)

    monkeypatch.setattr(BagRecorder, "add_topic", reject_one)
    with BackgroundNode("publisher", "/lab") as node:
        publishers = [node.create_publisher(String, name, 10) for name in ("strange", "known")]
        node.create_timer(0.05, lambda: [one.publish(String(data="here")) for one in publishers])
        arguments = ["--namespace", "/lab/", "--topics", "strange", "--topics", "known", "--duration", "2"]
        result = CliRunner().invoke(record, [*arguments, "--output", str(tmp_path / "walk"), "--json"])
        assert isinstance(result.exception, SoftformError)
        assert "/lab/strange was not recorded: 'lab_msgs' is not installed." in str(result.exception)
        figures = json.loads(result.stdout)
        assert figures["written"] > 10 and list(figures["rejected"]) == ["/lab/strange"]
    with background_recording(["known"], tmp_path / "again", "lab") as recorder:
        recorder.rejected["/lab/strange"] = "it is not installed"
        health = recorder.health()
    assert health.level == ERROR and "/lab/strange is not recorded: it is not installed" in health.message
