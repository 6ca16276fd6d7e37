"""Node `shape_predictor`: parameters, what the driver measures, and the life cycle."""

import time
from contextlib import suppress

from builtin_interfaces.msg import Time

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.history import History
from softform_core.forward.robot_models import SurfaceModels, TipModels, open_models
from softform_core.robots import load_robot
from softform_core.simulation.newton import NoEquilibriumError
from softform_inference.prediction import measured_values
from softform_inference.surface_predictions import SurfacePredictions
from softform_inference.tip_predictions import TipPredictions
from softform_interfaces.msg import ActuationHistory, ActuatorState, DriverState
from softform_ros import qos
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.histories import history_from_message
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.node_models import open_node_models
from softform_ros.parameters import MODEL_PARAMETERS, Parameter
from softform_ros.timers import create_steady_timer

PARAMETERS = (
    *MODEL_PARAMETERS,
    Parameter("surface_points", 1000, "points of `predicted_cloud`", 100, 100000),
    Parameter("rate", 10.0, "most predictions a second, Hz", 0.1, 50.0),
    Parameter("state_timeout", 2.0, "values silent for this long are reported in the diagnostics, s", 0.1, 60.0),
)


_MEASURED_SECONDS = 0.5
"""Longest silence of a driver that drives, s: it measures at least twice in this time."""

_REST_SECONDS = 1.0
"""Period of publishing the rest shape for late subscribers, s."""


class ShapePredictorNode(SoftformLifecycleNode):
    """Publishes the surface, or the tip's frame, that the measured values make.

    Once the driver measures nothing any more the rest shape is published, marked as stale: no inflated one stays.
    """

    may_use_sim_time = True

    def __init__(self) -> None:
        super().__init__("shape_predictor", PARAMETERS, hardware_id="shape_predictor")
        self._predictions: SurfacePredictions | TipPredictions | None = None
        self._newest: tuple[Array, Time] | None = None
        self._received = self._driver_heard_at = self._rest_shown = -float("inf")
        self._driver_runs = False
        self._fault = ""

    def configure(self) -> None:
        """Load robot and models, and open topics and service."""
        values = self.parameters
        robot = self._robot = load_robot(values["robot"]).in_namespace(self.get_namespace())
        self.diagnostics.hardware_id = robot.name
        self._history = History()
        models = self._models = open_node_models(
            self, robot, open_models, lambda other: other.current.points(robot.rest_actuation)
        )
        if isinstance(models, SurfaceModels):
            self._predictions = SurfacePredictions(self, robot, models)
        elif isinstance(models, TipModels):
            self._predictions = TipPredictions(self, robot, models)
        assert self._predictions is not None
        self.opened.callback(self._predictions.close)
        self._newest, self._fault, self._driver_heard_at = None, "", -float("inf")
        self.subscribe(ActuatorState, "actuator_state", self._on_actuator_state, qos.ACTUATOR_STATE_READER)
        self.subscribe(DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE)
        self.subscribe(ActuationHistory, "actuation_history", self._on_history, qos.LATCHED_STATE)
        timer = create_steady_timer(self, 1.0 / values["rate"], self._predict_newest)
        self.opened.callback(self.destroy_timer, timer)
        used = ", ".join(f"{key}: {value}" for key, value in models.description().items())
        self.get_logger().info(f"predicts '{robot.name}'; {used}")

    def cleanup(self) -> None:
        """Close topics and service, and forget the models."""
        self._predictions = None

    def health(self) -> Health:
        """Say whether predictions follow the robot."""
        values = self._models.description()
        if self._models.fault:
            return Health(WARN, f"sim-to-real model rejected: {self._models.fault}", values)
        if not self.is_active:
            return Health(OK, "inactive", values)
        silence = time.monotonic() - self._received
        if silence > self.parameters["state_timeout"]:
            return Health(WARN, "no values come on actuator_state; check that the driver is active", values)
        if self._fault:
            return Health(WARN, self._fault, values)
        return Health(OK, "predicting", values)

    def _on_actuator_state(self, message: ActuatorState) -> None:
        self._received = time.monotonic()
        try:
            values = measured_values(self._robot, message.name, message.value)
        except SoftformError as error:
            self._fault = str(error)
            self.get_logger().warning(f"no prediction: {error}", throttle_duration_sec=5.0)
            return
        self._newest, self._fault = (values, message.header.stamp), ""

    def _on_history(self, message: ActuationHistory) -> None:
        with suppress(SoftformError):  # one of another robot
            self._history = history_from_message(message, self._robot)

    def _on_driver_state(self, message: DriverState) -> None:
        self._driver_runs, self._driver_heard_at = message.state == DriverState.RUNNING, time.monotonic()

    def _is_stale(self, now: float) -> bool:
        """Return whether a driver that was heard of measures nothing: it does not run, or is silent."""
        if self._driver_heard_at == -float("inf"):  # as in a recording without it
            return False
        is_silent = now - self._driver_heard_at > self.parameters["state_timeout"]
        return now - self._received > _MEASURED_SECONDS and (is_silent or not self._driver_runs)

    def _predict_newest(self) -> None:
        if not self.is_active or self._predictions is None:
            return
        newest, self._newest = self._newest, None
        if newest is None:
            now = time.monotonic()
            if self._is_stale(now) and now - self._rest_shown > _REST_SECONDS:
                self._rest_shown = now
                self._predictions.publish(
                    History(), self._robot.rest_actuation, self.get_clock().now().to_msg(), stale=True
                )
            return
        values, stamp = newest
        try:
            self._predictions.publish(self._history, self._robot.nearest_actuation(values), stamp, stale=False)
        except NoEquilibriumError as error:  # of a simulation: the last prediction stays
            self._fault = str(error)
            self.get_logger().warning(f"no prediction: {error}", throttle_duration_sec=5.0)


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(ShapePredictorNode)


if __name__ == "__main__":
    main()
