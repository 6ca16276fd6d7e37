"""Programs: what is refused, with its line, and what a robot is asked for, block after block."""

import math
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Pose

from softform_client.client import Code, GoalFailedError, Mode
from softform_client.program_file import FolderFiles, ProgramText
from softform_client.program_run import ProgramRun
from softform_core.errors import SoftformError
from softform_core.paths import home
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.shapes.write import write_ply
from softform_interfaces.action import CaptureShape, ReachShape
from softform_ros.conversions import cloud_from_points

ROBOT = load_robot("membrane")
VALUES = "[1, 2, 3, 4, 5, 6, 7, 8, 9]"


def program(blocks, robot="membrane"):
    return f"robot: {robot}\nblocks:\n" + "".join(f"  {line}\n" for line in blocks.strip("\n").splitlines())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- 3", ["line 1: give fields"]),
        ("blocks: [verify]", ["line 1, robot: Field required"]),
        (program("- wait: x"), ["line 3, block 1, wait: "]),
        (program("- wait: '1'"), ["line 3, block 1, wait: "]),
        (program("- wait: -1"), ["line 3, block 1, wait: "]),
        (program("- wait: .nan"), ["line 3, block 1, wait: "]),
        (program("- fly: 1"), ["line 3, block 1: this is no block"]),
        (program("- wait: 1\n  verify:"), ["line 4, block 1, verify: 'verify' belongs to another block"]),
        (program("- wait: 1\n  slowly: true"), ["line 4, block 1, slowly: there is no such field"]),
        (program("- wait: 1\n  wait: 2"), ["twice", "line 3"]),
        (program("- repeat: 0\n  blocks: [verify]"), ["line 3, block 1, repeat: "]),
        (program("- repeat: 2\n  blocks: []"), ["line 4, block 1, blocks: "]),
        (program("- repeat: 2\n  blocks:\n    - verify\n    - wait: no"), ["line 6, block 1.2, wait: "]),
        (program("- move_to_points:\n    - {u: 2, target: [0, 0, 0]}"), ["line 4, block 1, move_to_points 1 u: "]),
        (program("- move_to_points: [{target: [0, 0]}]"), ["block 1, move_to_points 1 target: "]),
        (program("- move_to_points: [{target: [0, 0, 25]}]"), ["line 3, block 1: ", "not millimetres"]),
        (program("- move_to_points: [{output: arm, target: [0, 0, 0]}]"), ["no patch or frame 'arm'"]),
        (program("- move_to_values: [1, 2]"), ["line 3, block 1: ", "takes 9 pressures"]),
        (program("- move_to_values: [1, 2, 3, 4, 5, 6, 7, 8, 1e9]"), ["line 3, block 1: "]),
        (program("- move_to_shape: none.ply"), ["block 1, unit: Field required"]),
        (program("- move_to_shape: none.ply\n  unit: mm"), ["line 3, block 1: ", "none.ply does not exist"]),
        (program("- capture: seen.doc"), ["line 3, block 1, capture: ", ".ply, .pcd, .csv"]),
        (program("- repeat: 2\n  blocks:\n    - capture: seen.ply"), ["line 5, block 1.1: ", "{n}"]),
        (program("- if_error_above_mm: 1\n  blocks: [verify]"), ["line 3, block 1: no error is measured before"]),
        (program("- verify", "arm"), ["line 1, robot: ", "'arm'"]),
        ("robot: membrane\nblocks: {a", ["not valid YAML", "line"]),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_block(tmp_path, text, told):
    with pytest.raises(SoftformError) as refused:
        ProgramText(text, "mine.yaml").aims(ROBOT, FolderFiles(tmp_path))
    assert "mine.yaml" in str(refused.value) and all(one in str(refused.value) for one in told), refused.value
    assert refused.value.next_step


def test_a_robot_of_ones_own_is_named_by_its_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_bytes((home() / "config" / "robots" / "membrane.yaml").read_bytes())
    own = load_robot(file)
    for robot, name in ((own, file), (own, "membrane"), (ROBOT, "membrane")):
        ProgramText(program("- wait: 1", name), "mine.yaml").aims(robot, FolderFiles(tmp_path))


def test_programs_are_neither_endlessly_long_nor_deep():
    deep = "[verify]"
    for _ in range(9):
        deep = f"[{{repeat: 1, blocks: {deep}}}]"
    for blocks in (deep, f"[{', '.join(['verify'] * 600)}, {{repeat: 1, blocks: [{', '.join(['verify'] * 600)}]}}]"):
        with pytest.raises(SoftformError, match="blocks"):
            ProgramText(f"robot: membrane\nblocks: {blocks}", "mine.yaml")


class Robot:
    """Notes what it is asked for; what is measured comes from a list."""

    def __init__(self, *measured):
        self.asked, self.measured, self.epoch, self.fails = [], [*measured], 7, None
        self.cancelled = threading.Event()

    def reach(self, target, mode, *, features=None, epoch, on_feedback, **options):
        assert epoch == 7
        on_feedback(SimpleNamespace(stage="moving"))
        if features is not None:
            what = "points", features.positions.tolist(), features.uv.tolist()
        else:
            what = "shape", target, mode, options["fix_pose"]
        self.asked.append(what)
        if self.fails:
            raise GoalFailedError("Too far.", self.fails, ReachShape.Result())
        result = ReachShape.Result()
        result.solve.mean_error = 4e-4
        result.solve.target_pose = Pose()
        result.solve.target_pose.position.x = 0.01
        result.solve.target_pose.orientation.w = 1.0
        if mode == Mode.CLOSED_LOOP:
            result.measured.valid, result.measured.mean_error = True, self.measured.pop(0)
        return result

    def follow(self, path, *, epoch, on_feedback):
        assert epoch == 7
        self.asked.append(("values", *path.values.tolist()))

    def capture(self, target=None, *, via, on_feedback):
        self.asked.append(("capture", target, via))
        cloud = cloud_from_points(np.eye(4)[:, :3], "base", CaptureShape.Result().cloud.header.stamp)
        result = CaptureShape.Result(cloud=cloud)
        result.measured.mean_error = self.measured.pop(0)
        return result

    def cancel(self):
        self.cancelled.set()
        return False


def running(blocks, robot, folder, **told):
    text, files = ProgramText(program(blocks), "mine.yaml"), FolderFiles(folder)
    return ProgramRun(text, text.aims(ROBOT, files), robot, files, 7, **told)


def test_blocks_are_done_in_their_order(tmp_path):
    robot, begun = Robot(0.003), []
    ended = running(
        f"""
- move_to_points:
    - {{u: 0.25, v: 0.75, target: [0, 0, 0.03]}}
- repeat: 2
  blocks:
    - move_to_values: {VALUES}
    - wait: 0.05
- verify
""",
        robot,
        tmp_path,
        begun=lambda row, note: begun.append((row.number, note)),
    ).run()
    values = ("values", [float(one) for one in range(1, 10)])
    wanted = ("points", [[0.0, 0.0, 0.03]], [[0.25, 0.75]])
    assert robot.asked == [wanted, values, values, ("capture", None, "")]
    assert (ended.state, ended.row, ended.code) == ("done", None, 0)
    assert [step.block for step in ended.steps] == ["1", "2.1", "2.2", "2.1", "2.2", "3"]
    assert ended.steps[0].predicted == 4e-4 and ended.steps[-1].measured == 0.003 and ended.steps[2].seconds >= 0.05
    assert ("2", "2 of 2") in begun and ("1", "moving") in begun


@pytest.mark.parametrize(("error", "moves"), [(0.0021, 1), (0.0019, 0), (0.002, 0)])
def test_blocks_are_done_if_the_measured_error_is_above_a_limit(tmp_path, error, moves):
    robot = Robot(error)
    blocks = f"- verify\n- if_error_above_mm: 2\n  blocks:\n    - move_to_values: {VALUES}"
    assert running(blocks, robot, tmp_path).run().state == "done"
    assert sum(one[0] == "values" for one in robot.asked) == moves


def test_an_error_that_is_not_known_is_not_taken_for_a_small_one(tmp_path):
    ended = running("- verify\n- wait: 0", Robot(math.nan), tmp_path).run()
    assert ended.state == "failed" and ended.row.number == "1"


def test_a_shape_is_compared_where_it_was_meant(tmp_path):
    shape = random_target(ROBOT, seed=3)
    write_ply(tmp_path / "target.ply", shape)
    blocks = "- move_to_shape: target.ply\n  unit: m\n  pose: {}\n- verify\n- capture: seen-{{n}}.ply"
    for pose, shift in (("fixed", 0.0), ("free", 0.01)):
        robot = Robot(0.001, 0.001)
        ended = running(blocks.format(pose), robot, tmp_path).run()
        assert ended.state == "done", ended.text
        assert robot.asked[0][2:] == (Mode.PLAN_AND_MOVE, pose == "fixed")
        for asked, via in zip(robot.asked[1:], ("", "scanner"), strict=True):
            assert np.allclose(asked[1].points, shape.points + [shift, 0.0, 0.0], atol=1e-6) and asked[2] == via
        assert (tmp_path / "seen-1.ply").is_file()
    robot = Robot(0.0015)
    blocks = "- move_to_shape: target.ply\n  unit: m\n  closed_loop: true\n- if_error_above_mm: 1\n  blocks: [wait: 0]"
    ended = running(blocks, robot, tmp_path).run()
    assert ended.steps[0].measured == 0.0015 and ended.steps[-1].title == "wait 0 s"


def test_a_goal_that_fails_ends_the_program_there(tmp_path):
    robot = Robot()
    robot.fails = Code.UNREACHABLE
    ended = running("- wait: 0\n- move_to_points: [{target: [0, 0, 0.03]}]\n- wait: 0", robot, tmp_path).run()
    assert (ended.state, ended.row.number, ended.row.line, ended.code) == ("failed", "2", 4, Code.UNREACHABLE)
    assert "UNREACHABLE" in ended.text and len(ended.steps) == 1


def ended_while_it_waits(tmp_path, end):
    robot = Robot()
    run = running(f"- wait: 20\n- move_to_values: {VALUES}", robot, tmp_path)
    found = []
    thread = threading.Thread(target=lambda: found.append(run.run()))
    thread.start()
    time.sleep(0.1)
    end(run, robot)
    thread.join(5.0)
    assert robot.asked == []
    return found[0], robot


def test_a_program_that_is_cancelled_moves_nothing_more_and_says_where_it_ended(tmp_path):
    ended, robot = ended_while_it_waits(tmp_path, lambda run, robot: run.cancel())
    assert ended.state == "stopped" and robot.cancelled.is_set()
    assert "block 1 (line 3)" in ended.text and "release" in ended.text


def test_a_stop_and_reset_while_a_program_waits_end_it(tmp_path):
    ended, _ = ended_while_it_waits(tmp_path, lambda run, robot: setattr(robot, "epoch", 8))
    assert ended.state == "failed" and "since the program began" in ended.text


def test_a_program_that_is_meant_for_an_epoch_that_is_over_does_not_begin(tmp_path):
    robot = Robot()
    robot.epoch = 8
    assert running(f"- move_to_values: {VALUES}", robot, tmp_path).run().state == "failed"
    assert robot.asked == []
