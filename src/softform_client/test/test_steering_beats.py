"""Beats of who steers: those of each sender are its own, and a program that stood still goes on with nothing."""

import time
from types import SimpleNamespace

import pytest

from softform_client import steering_beats
from softform_client.steering_beats import ProgramBeats, SteeringBeats
from softform_core.errors import SoftformError
from softform_interfaces.msg import SteeringBeat


class Topic:
    """A node whose one topic everybody hears at once, as beats."""

    def __init__(self):
        self.sent, self.readers, self.done = [], [], []

    def create_publisher(self, kind, name, profile):
        return SimpleNamespace(publish=self.publish, wait_for_all_acked=lambda longest: self.done.append("waited"))

    def create_subscription(self, kind, name, reader, profile):
        self.readers.append(reader)
        return reader

    def destroy_publisher(self, publisher):
        self.done.append("closed")

    def destroy_subscription(self, reader):
        self.readers.remove(reader)

    def publish(self, beat):
        self.sent.append(beat)
        for reader in tuple(self.readers):
            reader(beat)


@pytest.fixture
def topic(monkeypatch):
    monkeypatch.setattr(steering_beats, "_LISTEN_SECONDS", 0.0)
    return Topic()


def test_one_who_lets_go_does_not_hide_another_one_who_steers(topic):
    one = SteeringBeats(topic, 1.0)
    for sender, dead_man in (("a", 5.0), ("b", 5.0), ("b", 0.0)):
        topic.publish(SteeringBeat(sender=sender, dead_man=dead_man))
    with pytest.raises(SoftformError, match="Another console or program"):
        one.check_alone()
    topic.publish(SteeringBeat(sender="a", dead_man=0.0))
    one.check_alone()


def test_senders_that_vanished_are_forgotten_and_a_flood_of_them_is_not_kept(topic):
    one = SteeringBeats(topic, 1.0)
    for number in range(100):
        topic.publish(SteeringBeat(sender=f"{number}", dead_man=1e-9))
    one.check_alone()
    for number in range(1000):
        topic.publish(SteeringBeat(sender=f"{number}", dead_man=float("inf")))
    topic.publish(SteeringBeat(sender="odd", dead_man=float("nan")))
    assert len(one._others) < 50
    with pytest.raises(SoftformError):
        one.check_alone()


def test_a_program_beats_from_its_first_target_on_and_says_when_it_ends(topic):
    with ProgramBeats(topic) as beats:
        time.sleep(0.25)
        assert topic.sent == [], "nothing is steered yet"
        beats.note_target()
        assert [one.dead_man for one in topic.sent] == [2.0]
        time.sleep(0.25)
    assert topic.done == ["waited", "closed"], "its last word has arrived before nobody says anything more"
    assert {one.dead_man for one in topic.sent[:-1]} == {2.0} and len(topic.sent) > 2
    assert topic.sent[-1].dead_man == 0.0 and topic.readers == []


def test_a_program_that_is_long_in_finding_its_next_target_holds_and_goes_on(topic, monkeypatch):
    monkeypatch.setattr(steering_beats, "_IDLE_SECONDS", 0.15)
    with ProgramBeats(topic) as beats:
        beats.note_target()
        time.sleep(0.5)
        assert topic.sent[-1].dead_man == 0.0
        beats.note_target()
        assert topic.sent[-1].dead_man == 2.0


def test_a_program_that_stood_still_sends_nothing_more_and_does_not_say_that_it_is_there(topic):
    with pytest.raises(SoftformError, match="stood still for 5"), ProgramBeats(topic) as beats:
        beats.note_target()
        beats._standstill._last -= 5.0
        sent = len(topic.sent)
        beats.note_target()
    assert all(one.dead_man == 2.0 for one in topic.sent) and len(topic.sent) <= sent + 1


def test_a_program_does_not_begin_where_somebody_else_steers(topic):
    with ProgramBeats(topic) as beats:
        topic.publish(SteeringBeat(sender="console", dead_man=1.0))
        with pytest.raises(SoftformError, match="Another console or program"):
            beats.note_target()
    assert len(topic.sent) == 1


def test_of_two_programs_that_begin_at_once_one_goes_on(topic):
    with ProgramBeats(topic) as one, ProgramBeats(topic) as other:
        for beats in (one, other):
            beats._sent_at = time.monotonic()
            beats._beats.beat(True)
        refused = 0
        for beats in (one, other):
            try:
                beats.note_target()
            except SoftformError:
                refused += 1
        assert refused == 1
