"""A recording that the disk holds up, overflows, or ends: nothing blocks, everything is counted."""

import threading
import time

import pytest
import yaml
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Reader
from std_msgs.msg import String

from softform_recording import write_queue
from softform_recording.bag_reading import bag_parts
from softform_recording.bag_recorder import BagRecorder
from softform_recording.topic_recorder import SequenceGaps
from softform_recording.write_queue import WriteQueue

MESSAGE = serialize_message(String(data="x" * 990))


class SlowBag(BagRecorder):
    """Its disk stands still until `goes_on` is set."""

    def __init__(self, folder):
        super().__init__(folder)
        self.goes_on = threading.Event()

    def write(self, topic, timestamp, message):
        assert self.goes_on.wait(30.0)
        super().write(topic, timestamp, message)


def wait_for(condition):
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read_times(folder):
    with Reader(bag_parts(folder)[0]) as reader:
        return [moment for _, moment, _ in reader.messages()]


def test_a_disk_that_stands_still_delays_nobody_and_loses_nothing_that_fits(tmp_path):
    bag = SlowBag(tmp_path / "bag")
    queue = WriteQueue(bag)
    queue.add_topic("/x", "std_msgs/msg/String", [])
    assert all(queue.put("/x", number, MESSAGE) for number in range(5000))  # would hang if it waited for the disk
    assert queue.waiting_bytes >= 4000 * len(MESSAGE)
    bag.goes_on.set()
    queue.close()
    assert read_times(bag.folder) == list(range(5000))
    assert queue.failure is None and not queue.dropped and queue.received.total() == queue.written == 5000


def test_what_does_not_fit_is_dropped_and_counted(tmp_path):
    bag = SlowBag(tmp_path / "bag")
    queue = WriteQueue(bag, capacity=10 * len(MESSAGE))
    queue.add_topic("/x", "std_msgs/msg/String", [])
    kept = [number for number in range(50) if queue.put("/x", number, MESSAGE)]
    assert len(kept) == 10 and queue.dropped["/x"] == 40
    bag.goes_on.set()
    queue.close()
    assert read_times(bag.folder) == kept
    metadata = yaml.safe_load((bag.folder / "metadata.yaml").read_text())
    assert metadata["rosbag2_bagfile_information"]["custom_data"] == {"softform.dropped": "40"}


class FailingBag(BagRecorder):
    """Fails at the fourth message."""

    def __init__(self, folder, fail):
        super().__init__(folder)
        self._fail = fail

    def write(self, topic, timestamp, message):
        if timestamp == 3:
            self._fail(self)
        super().write(topic, timestamp, message)


def fill_the_disk(bag):
    bag._stop_after(OSError(28, "No space left on device"))


def cross_the_wires(bag):
    raise RuntimeError("wires crossed")


@pytest.mark.parametrize(
    ("fail", "said"), [(fill_the_disk, "No space left"), (cross_the_wires, "RuntimeError: wires crossed")]
)
def test_a_failure_is_kept_and_what_comes_after_it_counts_as_dropped(tmp_path, fail, said):
    bag = FailingBag(tmp_path / "bag", fail)
    queue = WriteQueue(bag)
    queue.add_topic("/x", "std_msgs/msg/String", [])
    for number in range(3):
        queue.put("/x", number, MESSAGE)
    wait_for(lambda: queue.written == 3)
    bag.flush()
    queue.put("/x", 3, MESSAGE)
    wait_for(lambda: queue.failure is not None)
    before = queue.dropped.total()
    assert not queue.put("/x", 4, MESSAGE) and queue.dropped.total() == before + 1
    queue.close()
    assert said in str(queue.failure)
    assert read_times(bag.folder) == [0, 1, 2]


def gaps(numbers, publishers=1):
    counter = SequenceGaps()
    for number in numbers:
        counter.note(number, lambda: publishers)
    return counter.lost


def test_gaps_in_the_numbers_of_one_publisher_are_counted():
    assert gaps([1, 2, 3]) == gaps([700, 701]) == 0
    assert gaps([1, 2, 5, 6, 9]) == 4


def test_publishers_that_come_and_go_are_no_gaps():
    assert gaps([1, 1, 2, 2, 3, 3], 2) == 0
    assert gaps([1, 40, 2, 41, 3, 42], 2) == 0
    assert gaps([5, 6, 7, 1, 2, 3]) == 0  # its node was started anew
    again = [298, 198, 58, 299, 199, 59, 300, 200, 60, 301, 201, 1, 302, 202, 2, 303, 203, 3, 304, 204, 1, 305, 205, 2]
    assert gaps(again, 3) == 0  # one of three ends and comes again, twice
    assert gaps([1, 40, 2, 41, 4, 42], 2) == 1


def test_what_fails_beside_the_bag_ends_no_thread_and_is_told(tmp_path, monkeypatch):
    def fail():
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(write_queue, "FLUSH_PERIOD", 0.0)
    monkeypatch.setattr(write_queue, "give_back_what_is_free", fail)
    queue = WriteQueue(BagRecorder(tmp_path / "bag"))
    queue.add_topic("/x", "std_msgs/msg/String", [])
    queue.put("/x", 1, MESSAGE)
    wait_for(lambda: queue.failure is not None)
    assert "Cannot allocate memory" in str(queue.failure) and queue._thread.is_alive()
    queue.close()
