"""Tips of a robot are collected into a table that any end leaves whole, and from it into the store of captured tips."""

from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Point

from softform_collect import tips as collecting
from softform_collect.client import CollectRequest
from softform_collect.tips import TipTable, collect_tips
from softform_core.errors import SoftformError
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot
from softform_core.training.tip_samples import read_tip_samples
from softform_interfaces.msg import MarkerFrame

ROBOT = load_robot("three_chamber", "tip")


class Rig:
    """Goes where it is led, and shows its tip, but for those numbers."""

    def __init__(self, hidden=(), dies_at=None):
        self.hidden, self.dies_at, self.led = hidden, dies_at, []

    def follow(self, path):
        if self.dies_at == len(self.led):
            raise SoftformError("The driver is at fault.")
        (values,) = path.values
        self.led.append(ROBOT.actuation_of(values))

    def capture(self, *, via, captures):
        assert via == "mocap" and captures > 1
        x, y, z = self.tip(self.led[-1])
        seen = len(self.led) - 1 not in self.hidden
        place = Point(x=x, y=y, z=z) if seen else Point(x=np.nan, y=np.nan, z=np.nan)
        markers = MarkerFrame(name=["base", "tip"], position=[Point(), place], visible=[True, seen])
        return SimpleNamespace(markers=markers)

    @staticmethod
    def tip(actuation):
        bent = actuation @ [[1.0, 0.0, 0.1], [-0.5, 0.9, 0.1], [-0.5, -0.9, 0.1]]
        return (bent * 5e-7 + [0.0, 0.0, 0.116]).tolist()


def in_turn(asked, done=()):
    """Numbers of actuations (n, m) from rest on, each the next one in the time that the robot takes."""
    here, left, order = ROBOT.rest_actuation, [n for n in range(len(asked)) if n not in done], []
    while left:
        order.append(min(left, key=lambda number: np.abs(asked[number] - here).max()))
        here = asked[left.pop(left.index(order[-1]))]
    return order


def collected(rig, output, count=12, seed=0):
    return collect_tips(ROBOT, rig, output, count, seed, lambda done, note: None)


def test_tips_come_into_a_store_with_what_was_before_them(tmp_path):
    rig = Rig(hidden={4})  # led to rest first: the fourth that is asked for
    found = collected(rig, tmp_path / "tips.zarr")
    assert (found.seen, found.not_seen) == (11, 1) and 0.0 < found.seconds < 1.0
    asked = halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 12, 0)
    asked = asked[in_turn(asked)]
    np.testing.assert_allclose(rig.led, np.concatenate([ROBOT.rest_actuation[None], asked]))
    samples, _ = read_tip_samples(tmp_path / "tips.zarr", ROBOT)
    seen = np.delete(np.arange(12), 3)
    np.testing.assert_allclose(samples.actuation, asked[seen], rtol=1e-9)
    np.testing.assert_allclose(samples.tips, [Rig.tip(one) for one in asked[seen]], rtol=1e-6)
    np.testing.assert_allclose(samples.past[0, -1], ROBOT.rest_actuation, atol=1e-9)
    np.testing.assert_allclose(samples.past[3, -1], asked[3], rtol=1e-9)  # the one that was not seen


def test_what_was_interrupted_goes_on_from_rest(tmp_path):
    with pytest.raises(SoftformError, match=r"at fault.* 6 of 12 tips are kept; the same command goes on"):
        collected(Rig(dies_at=7), tmp_path / "tips.zarr")
    table, asked = tmp_path / "tips.csv", halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 12, 0)
    with table.open("a") as file:
        file.write("6,123")  # and the process died in a row
    rig = Rig()
    assert collected(rig, tmp_path / "tips.zarr").not_seen == 0 and len(rig.led) == 12 - 6 + 1
    done = in_turn(asked)[:6]
    np.testing.assert_allclose(rig.led[1:], asked[in_turn(asked, done)])
    samples, _ = read_tip_samples(tmp_path / "tips.zarr", ROBOT)
    assert len(samples.tips) == 12
    np.testing.assert_allclose(samples.past[6, -1], ROBOT.rest_actuation, atol=1e-9)
    np.testing.assert_allclose(samples.past[6, -2], samples.actuation[5], rtol=1e-9)
    with pytest.raises(SoftformError, match="is there already"):
        collected(Rig(), tmp_path / "tips.zarr")


def test_a_marker_that_is_not_seen_ends_it_and_keeps_what_is_there(tmp_path):
    with pytest.raises(SoftformError, match="not seen 10 times in a row"):
        collected(Rig(hidden=range(3, 99)), tmp_path / "tips.zarr", 30)
    assert len(TipTable(tmp_path / "tips.csv", ROBOT).numbers) == 12 and not (tmp_path / "tips.zarr").exists()


def test_a_table_of_another_robot_or_seed_is_told(tmp_path):
    with pytest.raises(SoftformError, match="at fault"):
        collected(Rig(dies_at=3), tmp_path / "tips.zarr")
    with pytest.raises(SoftformError, match="another --seed"):
        collected(Rig(), tmp_path / "tips.zarr", seed=1)
    with pytest.raises(SoftformError, match="no table of tips of 'planar_fingers'"):
        TipTable(tmp_path / "tips.csv", load_robot("planar_fingers"))


@pytest.mark.parametrize("row", ["3,1,2\n", "one,1,2,3,4,5,6\n", "\n"])
def test_a_table_that_was_edited_is_told(tmp_path, row):
    with pytest.raises(SoftformError, match="at fault"):
        collected(Rig(dies_at=3), tmp_path / "tips.zarr")
    with (tmp_path / "tips.csv").open("a") as file:
        file.write(row)
    with pytest.raises(SoftformError, match="no table of tips of 'three_chamber'"):
        collected(Rig(), tmp_path / "tips.zarr")


def test_more_tips_are_added_to_those_that_are_there(tmp_path):
    collected(Rig(), tmp_path / "tips.zarr")
    rig = Rig()
    assert collected(rig, tmp_path / "more.zarr", 12).seen == 12 and len(rig.led) == 13
    (tmp_path / "tips.csv").rename(tmp_path / "most.csv")
    rig = Rig()
    assert collected(rig, tmp_path / "most.zarr", 20).seen == 20 and len(rig.led) == 9


def test_chambers_are_seldom_emptied_on_the_way(tmp_path):
    """Each finger that bends to the other side waits for the last of the air of one of its chambers."""
    fingers, rig = load_robot("planar_fingers", "tip"), Rig()
    rig.tip = lambda actuation: [0.2, 0.0, 0.0]
    led: list[np.ndarray] = []
    rig.follow = lambda path: (led.append(fingers.actuation_of(path.values[0])), rig.led.append(led[-1]))
    asked = halton_actuations(fingers.actuation_min, fingers.actuation_max, 200, 0)
    collecting._led(fingers, rig, TipTable(tmp_path / "t.csv", fingers), asked, list(range(200)), lambda *_: None)
    sides = np.sign(np.array(led)[1:])
    turned = int((sides[1:] != sides[:-1]).any(axis=1).sum())
    assert len(led) == 201 and turned < 30 < (np.diff(np.sign(asked), axis=0) != 0).any(axis=1).sum()


def test_only_a_marker_shows_a_tip():
    request = CollectRequest("three_chamber", 5, "scanner", None, 0, False, "default", "softform", 0, False)
    with pytest.raises(SoftformError, match="marker alone"):
        collecting.collect(request, print)
