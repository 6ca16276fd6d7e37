"""Convert between the message `ActuationHistory` and the inputs of models."""

from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from softform_core.errors import SoftformError
from softform_core.forward.history import History
from softform_core.robots import Robot
from softform_interfaces.msg import ActuationHistory


def history_message(history: History, robot: Robot, stamp: Time) -> ActuationHistory:
    """Return the message of a robot's history until a moment."""
    turns = [turn for each in history.turns for turn in each]
    return ActuationHistory(
        header=Header(stamp=stamp),
        known=history.is_known,
        name=robot.actuation_names,
        turns=[len(each) for each in history.turns],
        stamp=[stamp for stamp, _ in turns],
        value=[value for _, value in turns],
    )


def history_from_message(message: ActuationHistory, robot: Robot) -> History:
    """Return the history that a message tells.

    Raises:
        SoftformError: If it is another robot's, or does not add up.
    """
    if list(message.name) != robot.actuation_names or len(message.turns) != len(message.name):
        raise SoftformError(
            f"A history of {', '.join(message.name) or 'nothing'} is none of '{robot.name}'.",
            "See whether the driver drives this robot.",
        )
    return History.of_rows(message.turns, message.stamp, message.value, message.known)
