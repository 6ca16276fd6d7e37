"""Convert between the message `ActuationHistory` and the inputs of models."""

from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from softform_core.errors import SoftformError
from softform_core.forward.history import History, turning_names
from softform_core.robots import Robot
from softform_interfaces.msg import ActuationHistory


def history_message(history: History, robot: Robot, stamp: Time) -> ActuationHistory:
    """Return the message of a robot's history until a moment."""
    each_turns = history.turns + history.of_actuators
    turns = [turn for each in each_turns for turn in each]
    return ActuationHistory(
        header=Header(stamp=stamp),
        known=history.is_known,
        name=turning_names(robot),
        turns=[len(each) for each in each_turns],
        stamp=[stamp for stamp, _ in turns],
        value=[value for _, value in turns],
    )


def history_from_message(message: ActuationHistory, robot: Robot) -> History:
    """Return the history that a message tells.

    Raises:
        SoftformError: If it is another robot's, or does not add up.
    """
    if list(message.name) != turning_names(robot) or len(message.turns) != len(message.name):
        raise SoftformError(
            f"A history of {', '.join(message.name) or 'nothing'} is none of '{robot.name}'.",
            "See whether the driver drives this robot.",
        )
    return History.of_rows(message.turns, message.stamp, message.value, message.known, robot.degrees_of_freedom)
