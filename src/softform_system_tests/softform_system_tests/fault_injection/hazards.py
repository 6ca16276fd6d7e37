"""The hazards that are known: what `bench rig` injects, how often, and what docs/safety.md says of each.

A row without a test that exists fails a test of this package, and so does a class of faults without a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hazard:
    """One row of the page.

    Attributes:
        hazard: What may hurt or break.
        cause: Why that may come about.
        detected: By what, and after how long at most.
        undetected: What of it is not detected.
        risk: What remains.
        rig: Classes of `bench rig` that inject it, and how often in a whole run, 0 where another row says so.
        promises: Promises of `bench schedules` that cover it.
        tests: Tests besides, as `path::name` from the checkout's root.
    """

    hazard: str
    cause: str
    detected: str
    undetected: str
    risk: str
    rig: Mapping[str, int] = field(default_factory=dict)
    promises: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


_LEASE = "src/softform_actuation/test/test_lease.py::"

HAZARDS: Mapping[str, tuple[Hazard, ...]] = {
    "The robot stays inflated, or tight": (
        Hazard(
            "A chamber stays full after a stop, and is called safe",
            "A valve sticks; a tube is kinked",
            "All chambers are measured after each vent until they are below `follow`, or a fault names them after 5 s. "
            "What was not measured counts as full",
            "A kink between sensor and chamber: the sensor sits on the board",
            "The air stays in until somebody opens the tube",
            {"stuck valve": 8},
            ("what is reported safe is measured safe",),
            ("src/softform_pneumatics/test/test_conformance.py::test_conformance",),
        ),
        Hazard(
            "Nobody commands the robot, and it holds its pressure",
            "The commander, or what planned for it, dies, freezes, is terminated",
            "No command for `command_timeout` (1 s)",
            "A commander that lives and asks for the wrong values",
            "1 s at the last values",
            {"two commanders": 9, "held shape": 8},
        ),
        Hazard(
            "Who steers from the page vanishes, and what was streamed last is held",
            "The page is closed, frozen or cut off; the console is killed, freezes or is cut off",
            "The page's beats, after 0.5 s; those of the console, after 1 s by the node that holds the robot, and by "
            "`command_timeout` where it commands itself",
            "A page that lives, and whose operator does not look",
            "1.2 s at the last values; a goal that was reached is held for `hold_timeout`, as any other client's",
            {},
            (),
            (
                "tests/test_console.py::test_a_console_that_vanishes_loses_what_it_steers",
                "tests/test_console.py::test_a_page_that_falls_silent_ends_its_motion",
            ),
        ),
        Hazard(
            "The driver dies or freezes, and the board holds its pressure",
            "`kill -9`, out of memory, a debugger, a starved computer",
            "Its guardian, at once; of a frozen driver after 2 s. The next driver is latched",
            "The board's firmware has no watchdog: nothing is left if the guardian is gone, too",
            "See the next row",
            {"kill -9": 14, "SIGTERM": 14, "frozen": 6},
            ("a driver that is dead or frozen vents",),
            ("src/softform_pneumatics/test/test_guardian.py::test_kill_9_of_the_driver_in_motion_ends_in_venting",),
        ),
        Hazard(
            "Driver and guardian die or freeze together, or the computer does",
            "A container ends or is paused, PID 1 dies, power or USB is gone",
            "A dead-man, where there is one: 0.5 s after the last heartbeat; proven at each activation",
            "Everything, without a dead-man; the driver's state and `status` warn of its absence",
            "Without a dead-man the board goes on for as long as it has power. A welded relay is found at the next "
            "stop, and cannot be opened by it",
            {"both gone": 8},
            (),
            (
                "src/softform_deadman/test/test_dead_man_controllers.py"
                "::test_it_cuts_when_driver_and_guardian_are_killed_together",
                "src/softform_deadman/test/test_dead_man_driver.py::test_a_welded_relay_is_no_confirmed_stop",
            ),
        ),
        Hazard(
            "A board does not answer, and cannot be vented",
            "It hangs, restarts, its cable or plug is out",
            "No measurement for `stream_timeout` (1 s); latched, and vented as soon as it is back",
            "What its pumps and valves do meanwhile",
            "Full chambers for as long as it is gone: cut the supply",
            {"serial": 52},
            (),
            ("tests/test_boards.py::*", "tests/test_air_faults.py::*"),
        ),
        Hazard(
            "The robot is held for hours",
            "A forgotten goal, a far due time, a client that has gone",
            "`hold_timeout` in the driver: the same values for 10 min; goals end 2 s after their client was seen last",
            "A client that was killed is seen for up to 20 s more; a commander whose values go on changing is believed",
            "10 min at the last values, also where a goal ended on its way",
            {"held too long": 4},
            ("Holding ends",),
        ),
        Hazard(
            "The computer sleeps while the robot is inflated",
            "Suspend, hibernation, a closed lid",
            "systemd-logind tells, and the sleep waits until all is safe; else a clock tells at the wake-up",
            "Where no logind is reached, as in a container, the sleep itself",
            "Full chambers while it sleeps: use a dead-man",
            {"sleep": 4},
            (),
            ("src/softform_actuation/test/test_sleep.py::test_sleep_waits_until_all_is_safe_each_time",),
        ),
    ),
    "The robot moves, and nobody wants that now": (
        Hazard(
            "What was asked for before a stop moves the robot after it",
            "A frozen node wakes up, a network sends again, a bag is played",
            "Whatever may start motion says when it was asked for (2 s) and in which epoch; both are compared",
            "—",
            "Up to 2 s old requests move it while nothing has made it safe",
            {"queued": 7, "stale bag": 6},
            ("Nothing queued moves", "Nothing old moves"),
            (f"{_LEASE}test_a_lease_is_not_given_for_what_was_asked_for_before_a_stop",),
        ),
        Hazard(
            "A reset clears a fault that nobody has seen",
            "A second fault or stop comes before the reset does",
            "A reset names the epoch that its caller saw",
            "Whether the caller has looked at the robot",
            "The operator's judgement",
            {"unseen fault": 8},
            ("A reset clears what was seen",),
        ),
        Hazard(
            "Two programs command at once, or one commands nonsense",
            "Two nodes, NaN, wrong units, another robot's commands",
            "One lease; each command is checked, by range, age, key and the robot's fingerprint",
            "Who listens to the commands has their key: see the network",
            "Values within the range that nobody meant",
            {"commands": 66, "other robot": 4},
            ("One holder",),
            (f"{_LEASE}test_what_everybody_can_hear_of_a_lease_is_not_enough_to_command",),
        ),
        Hazard(
            "It inflates as it starts",
            "A stop, a signal or a crash in the middle of a start; another folder of state",
            "Configuring moves nothing; the latch is found wherever it lies",
            "—",
            "The test of the chambers moves them by 0.4 kPa",
            {"start": 8, "changed runs": 4},
            (),
            ("src/softform_actuation/test/test_latch.py::test_what_was_left_elsewhere_counts_and_goes_with_the_rest",),
        ),
        Hazard(
            "Somebody else on the network moves or unlatches it",
            "ROS 2 lets every computer of its domain call everything",
            "Hardware is not configured where the network reaches it, unless that was said; enclaves with SROS2",
            "Without SROS2, who has an account on this computer",
            "Trust in the users of this computer",
            {"other driver": 0},
            (),
            (
                "src/softform_core/test/test_network_reach.py::*",
                "tests/test_security_policy.py::*",
                "src/softform_ros/test/test_alone.py::*",
            ),
        ),
    ),
    "It is driven wrongly": (
        Hazard(
            "Two drivers drive one board, or one drives another's",
            "Two names of a port, a container, swapped plugs",
            "Locks by the device's number; the adapter is compared whenever it is opened",
            "Adapters without a number in the same socket; tubes that were swapped after `./softform commission`",
            "Commission a robot chamber by chamber after each change of tubes",
            {"other driver": 5},
            (),
            (
                "src/softform_actuation/test/test_serial_link.py::test_another_adapter_is_vented_and_not_used",
                "src/softform_pneumatics/test/test_same_board.py"
                "::test_another_board_than_at_configure_is_vented_and_not_used",
                "src/softform_tools/test/test_commission_stack.py::test_a_scanner_finds_the_exchanged_channels",
            ),
        ),
        Hazard(
            "A description asks for more than the robot bears",
            "A wrong unit, wide tolerances, another robot's file",
            "Ceilings of the machine that no description raises; tolerances are bounded by the range",
            "A range below the ceiling and above what the robot bears",
            "Fit a relief valve at what the robot bears",
            {"limits": 4},
            (),
            ("src/softform_actuation/test/test_ceilings.py::test_what_was_driven_is_kept_and_more_is_confirmed_once",),
        ),
        Hazard(
            "A pressure runs away from what was asked",
            "A lost byte turns 3.790 into 3790; a leak; a stuck valve",
            "Two measurements, rising, 1 kPa above all that was asked; the balance of air over 1.5 s; 5 s in any case",
            "What the pump does until then (7.8 kPa of 5 was seen); Protocol A has no checksum",
            "The relief valve",
            {"serial": 0},
            (),
            (
                "src/softform_actuation/test/test_follow_watch.py"
                "::test_a_chamber_that_runs_away_is_found_within_three_measurements",
            ),
        ),
        Hazard(
            "Readings stand still, and the robot is driven blindly",
            "A stuck sensor, a firmware that sends its last reading again",
            "The same value to the last digit for 2 s while its setpoint has moved by a tenth of the range",
            "A sensor that drifts, or stands still near ambient: its chamber is taken for empty",
            "Sensors are single: compare them with a gauge. Until it is found the board pumps: 24 kPa of 5 was seen. "
            "The relief valve",
            {"frozen readings": 3},
            (),
            (
                "src/softform_actuation/test/test_frozen_watch.py"
                "::test_a_chamber_that_stands_still_while_its_setpoint_moves_is_found",
            ),
        ),
        Hazard(
            "A message ends the driver or a node",
            "Stamps before 1970, types that do not exist, bytes that are no message",
            "Callbacks that fail are counted and told; the driver's loop does not depend on them",
            "—",
            "A node that is busy with nonsense is late",
            {"hostile messages": 10},
            (),
            ("src/softform_ros/test/test_guarded_node.py::test_every_request_is_answered",),
        ),
        Hazard(
            "A clock jumps, or the disk is full",
            "A time server; recordings",
            "All that is timed goes by steady clocks; without a latch that can be written no driver is activated",
            "—",
            "A stop that cannot be written down does not outlive the driver, and says so",
            {"clock jump": 6, "disk full": 6},
        ),
        Hazard(
            "Captures lie about the robot's shape",
            "Exchanged, hidden or teleported markers, broken scans",
            "By motion capture and scanner; what is not finite is not published",
            "A capture that is plausible and wrong",
            "The shape is missed; pressures stay within their range",
            {"mocap": 30, "scan": 28},
        ),
    ),
    "Tendons": (
        Hazard(
            "Motors pull on without a driver",
            "The bus is pulled, the driver dies or freezes",
            "The motors' watchdogs stop them after 1 s; the guardian slackens",
            "—",
            "A pulled bus leaves the tendons as tight as they are",
            {"tendon bus": 8},
            (),
            ("tests/test_tendon_bus.py::*",),
        ),
        Hazard(
            "A motor pulls harder than it may",
            "A lost packet, a restart, a broken output stage",
            "Its limits are read back with each reading; 1.2 of the limit for 0.2 s",
            "What it does in that time",
            "A fuse for each motor",
            {"motor limits": 6},
            (),
            ("src/softform_tendons/test/test_lost_packets.py::test_whatever_is_lost_no_motor_pulls_harder_and_nothing_is_claimed",),
        ),
        Hazard(
            "A motor jumps, or loses its turns",
            "A gear that slips, an encoder, a supply that fails for a moment",
            "Two readings that lie further apart than it can turn; it slackens by the turn that is in its range",
            "A slip by less than the tolerance of following",
            "The shape is another one until the tendons are calibrated",
            {},
            (),
            ("src/softform_tendons/test/test_motor_limits.py::test_a_motor_that_jumps_is_a_fault_at_once_and_is_slackened_to_where_it_is_slack",),
        ),
        Hazard(
            "A tendon tears, comes off its drum, or hangs slack",
            "Wear, a knot, a pull beyond what it bears",
            "A motor that is pulled beyond `taut_from` takes less than `taut_current` for 0.5 s, unless it pays out",
            "A tear while it is pulled less than that, until it is pulled further; by `calibrate` at any time",
            "The end of a tendon whips: wear goggles. The robot springs back as it tears",
            {"torn tendon": 4},
            (),
            ("tests/test_tendon_bus.py::test_what_goes_wrong_while_it_is_driven_is_unsafe",),
        ),
        Hazard(
            "A robot that is held under power gets hot, or is held for ever",
            "`safe_action: hold`",
            "Motors at rest are looked at once a second; after `hold_limit` they are slackened, without power; by "
            "the guardian if the driver died",
            "A hold whose driver and guardian are both gone lasts until the next one starts",
            "Do not touch a robot that holds: the state is HOLDING, not SAFE",
            {"holding": 6},
            (),
            ("src/softform_tendons/test/test_holding.py::test_a_hold_ends_after_its_time_slack_and_without_power",),
        ),
    ),
    "Arms": (
        Hazard(
            "Arms move on without a driver, or after a stop",
            "The node that shapes, its client, the driver or the camera dies, freezes or is late; the cable is pulled",
            "The guardian sets the brakes; without points the controller brakes by itself after `watchdog` (0.5 s); "
            "with its brakes on it takes no point",
            "A controller that hangs goes on to the last point, some millimetres away",
            "Do not touch arms that hold: the state is HOLDING, not SAFE. Only an emulated controller was driven",
            {"arms": 14},
            (),
            (
                "src/softform_arms/test/test_arms_device.py::test_whatever_ends_a_motion_brakes_end_it_at_once",
                "src/softform_arms/test/test_arms_conformance.py::test_conformance",
                "tests/test_arms.py::*",
            ),
        ),
        Hazard(
            "A brake slips, and an arm sinks with what it holds",
            "Wear, too heavy a load",
            "Joints that are held are measured: one that moves, or is found elsewhere, is a fault that names it",
            "What a joint moves by less than half of `settle`",
            "It sinks until somebody supports it",
            {},
            (),
            ("src/softform_arms/test/test_arms_device.py::test_a_brake_that_slips_slowly_is_found_by_where_the_joint_is",),
        ),
        Hazard(
            "What the arms hold is torn, slips out, or is not what it is taken for",
            "A wrong mesh, a weak grip, another object in view, a target that asks too much",
            "By the model's stress before each move and while the arms move, settle and are looked at: the driver is "
            "stopped; by the camera: nothing moves on",
            "An object that differs by less than a centimetre; stress that the model lacks; contact of the arms",
            "The material's numbers are somebody's; arms keep from each other by their limits alone",
            {"arms": 0},
            (),
            (
                "src/softform_shaping/test/test_shaping_sighting.py::test_an_object_that_is_not_as_it_should_be_ends_the_task_where_the_grippers_are",
                "src/softform_shaping/test/test_shaping_remote.py::test_arms_that_sink_as_they_settle_are_stopped_too",
            ),
        ),
    ),
}  # fmt: skip
"""By headings of the page."""

SHARES: Mapping[str, int] = {
    name: count for rows in HAZARDS.values() for row in rows for name, count in row.rig.items() if count
}
"""Injections of each class in a script of the default length, cheap ones more often."""
