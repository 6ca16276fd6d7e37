"""The closed loop and the sim-to-real model in the running node: results, stops, faults and kills midway."""

import contextlib
import shutil
import signal
import threading

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition

from softform_client.client import Code, GoalFailedError, Mode, NotConnectedError
from softform_core.forward.sim_to_real_store import SIM_TO_REAL
from softform_core.paths import models_dir
from softform_interfaces.msg import DriverState
from softform_ros import qos

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])

pytestmark = pytest.mark.usefixtures("fresh_robot")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A copy of the shipped model, to be broken."""
    folder = tmp_path_factory.mktemp("models") / "model"
    shutil.copytree(models_dir() / "membrane" / "rig_default", folder)
    return folder


@pytest.fixture(scope="module")
def node(start_node, model):
    """One process for the whole module; the loops plan without sim-to-real, as the stand-in is another robot."""
    one = start_node("settle_timeout:=4.0", "capture_timeout:=3.0", f"sim_to_real:={model}")
    one.start()
    return one


@pytest.fixture
def softer(stand_in, moving_client):
    """A robot that answers each actuation by 15 % less than its model."""
    stand_in.response = 0.85
    return moving_client


def at(round_, stage, act):
    """A feedback callback that acts once, in a round and stage."""
    done = threading.Event()

    def on_feedback(feedback):
        if (feedback.round, feedback.stage) == (round_, stage) and not done.is_set():
            done.set()
            act()

    return on_feedback


def test_the_loop_lowers_the_measured_error_and_holds_the_best_round(softer, stand_in, shape_of, wait_for):
    seen = []
    result = softer.reach(shape_of(0.8 * HIDDEN), Mode.CLOSED_LOOP, without_sim_to_real=True, on_feedback=seen.append)
    means = list(result.round_mean_errors)
    assert result.error_code == Code.NONE and result.measured.valid and not result.solve.used_sim_to_real
    assert len(means) == len(result.round_max_errors) >= 2
    assert result.measured.mean_error == min(means) < 0.3 * means[0]
    assert np.asarray(result.actuators.value) == pytest.approx(0.8 / 0.85 * HIDDEN, abs=150.0)
    assert max(one.round for one in seen) >= 1
    assert [one.stage for one in seen if one.round == 1][:1] == ["solving"]
    assert (stand_in.commands[-1] == np.asarray(result.actuators.value)).all()
    wait_for(lambda: not stand_in.is_silent(), "the best shape to be held")


def test_verifying_reports_the_open_loop_as_its_only_round(softer, shape_of):
    result = softer.reach(shape_of(HIDDEN), Mode.PLAN_MOVE_AND_VERIFY)
    assert list(result.round_mean_errors) == [result.measured.mean_error]
    assert list(result.round_max_errors) == [result.measured.max_error]


def test_cancelled_in_a_later_round_it_tells_what_was_measured(softer, stand_in, shape_of):
    canceller = threading.Thread(target=softer.cancel, daemon=True)
    with pytest.raises(GoalFailedError) as failure:
        softer.reach(
            shape_of(HIDDEN), Mode.CLOSED_LOOP, without_sim_to_real=True, on_feedback=at(1, "settling", canceller.start)
        )
    result = failure.value.result
    assert failure.value.code == Code.CANCELLED and result.measured.valid and len(result.round_mean_errors) == 1
    assert result.measured.mean_error == result.round_mean_errors[0] and len(result.actuators.value) == 9
    assert not stand_in.is_silent()


def test_a_fault_in_a_later_round_ends_goal_and_commands(softer, stand_in, shape_of, wait_for):
    def burst():
        stand_in.announce(DriverState.FAULT, "burst hose")

    with pytest.raises(GoalFailedError, match="burst hose") as failure:
        softer.reach(shape_of(HIDDEN), Mode.CLOSED_LOOP, without_sim_to_real=True, on_feedback=at(1, "settling", burst))
    assert failure.value.code == Code.DRIVER_FAULT and len(failure.value.result.round_mean_errors) == 1
    wait_for(stand_in.is_silent, "the commands to end")
    stand_in.announce(DriverState.SAFE, "reset")
    assert stand_in.is_silent()


def test_a_scanner_that_dies_in_a_later_round_leaves_the_robot_at_the_best(softer, stand_in, shape_of):
    def die():
        stand_in.scans = False

    with pytest.raises(GoalFailedError, match="No cloud captured") as failure:
        softer.reach(shape_of(HIDDEN), Mode.CLOSED_LOOP, without_sim_to_real=True, on_feedback=at(1, "solving", die))
    result = failure.value.result
    assert failure.value.code == Code.CAPTURE_TIMEOUT and len(result.round_mean_errors) == 1
    assert (stand_in.commands[-1] == np.asarray(result.actuators.value)).all() and not stand_in.is_silent()


def test_deactivated_between_rounds_it_sends_nothing_more(softer, node, stand_in, shape_of, wait_for):
    deactivate = threading.Thread(target=node.change_state, args=(Transition.TRANSITION_DEACTIVATE,), daemon=True)
    with pytest.raises(GoalFailedError) as failure:
        softer.reach(
            shape_of(HIDDEN), Mode.CLOSED_LOOP, without_sim_to_real=True, on_feedback=at(1, "solving", deactivate.start)
        )
    deactivate.join()
    assert failure.value.code == Code.NODE_DEACTIVATED
    wait_for(stand_in.is_silent, "the commands to end")
    assert node.change_state(Transition.TRANSITION_ACTIVATE)


def test_the_learned_reality_is_used_and_a_broken_model_is_not(client, model, stand_in, shape_of, wait_for):
    values = {}

    def on_diagnostics(message):
        for status in message.status:
            if status.name.endswith("inverse_kinematics"):
                values.update({pair.key: pair.value for pair in status.values}, message=status.message)

    watch = stand_in.node.create_subscription(DiagnosticArray, "/diagnostics", on_diagnostics, qos.DIAGNOSTICS)
    blind = client.reach(shape_of(HIDDEN), tolerance=1e-6, without_sim_to_real=True)
    seeing = client.reach(shape_of(HIDDEN), tolerance=1e-6)
    assert seeing.solve.used_sim_to_real and not blind.solve.used_sim_to_real
    assert np.asarray(blind.actuators.value) == pytest.approx(HIDDEN, abs=30.0)
    assert np.asarray(seeing.actuators.value) != pytest.approx(HIDDEN, abs=100.0)
    wait_for(lambda: values.get("sim-to-real") == "model", "the model's name on /diagnostics")
    (model / SIM_TO_REAL.weights_file).write_bytes(b"half a file")
    wait_for(lambda: "not in use" in values["message"], "the broken model to be reported")
    again = client.reach(shape_of(HIDDEN), tolerance=1e-6)
    assert again.solve.used_sim_to_real and again.actuators.value == seeing.actuators.value
    stand_in.in_executor(lambda: stand_in.node.destroy_subscription(watch))


def test_killed_in_a_later_round_its_commands_cease(softer, node, stand_in, shape_of, wait_for):
    """The driver vents a robot whose commander is silent. Last in this module: the node is gone."""
    stand_in.part_a_tick = 0.1

    def reach():
        # The client learns of the death by DDS, after a while; nobody waits for that here.
        with contextlib.suppress(NotConnectedError):
            softer.reach(
                shape_of(HIDDEN),
                Mode.CLOSED_LOOP,
                without_sim_to_real=True,
                on_feedback=at(1, "settling", node.process.kill),
            )

    threading.Thread(target=reach, daemon=True).start()
    assert node.process.wait(timeout=30.0) == -signal.SIGKILL
    wait_for(stand_in.is_silent, "the commands to cease")
