"""Hardware is kept from the network: by the range, by the profile, and by what is not known."""

import pytest

from softform_core.errors import SoftformError
from softform_core.network_reach import network_reach, require_local
from softform_core.paths import config_dir

LOOPBACK = config_dir() / "middleware" / "loopback.xml"
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILE = "FASTRTPS_DEFAULT_PROFILES_FILE"


@pytest.mark.parametrize(
    "environment",
    [
        {RANGE: "LOCALHOST"},
        {RANGE: "OFF"},
        {RANGE: "LOCALHOST", "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"},
        {"ROS_LOCALHOST_ONLY": "1"},
        {RANGE: "LOCALHOST", "ROS_STATIC_PEERS": "127.0.0.1;localhost"},
        {RANGE: "LOCALHOST", "ROS_DISCOVERY_SERVER": "127.0.0.1:11811;[::1]"},
        {RANGE: "SYSTEM_DEFAULT", PROFILE: str(LOOPBACK)},
        {PROFILE: str(LOOPBACK)},
        {PROFILE: str(LOOPBACK), "ROS_STATIC_PEERS": "10.0.0.7"},
    ],
)
def test_what_stays_on_this_machine(environment):
    assert network_reach(environment) == "this machine"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {RANGE: ""},
        {RANGE: "SUBNET"},
        {RANGE: "SYSTEM_DEFAULT"},
        {RANGE: "localhost"},
        {RANGE: "LOCALHOST", "ROS_STATIC_PEERS": "10.0.0.7"},
        {RANGE: "LOCALHOST", PROFILE: str(LOOPBACK), "ROS_STATIC_PEERS": "10.0.0.7"},
        {RANGE: "LOCALHOST", "ROS_DISCOVERY_SERVER": "robot.lab:11811"},
        {PROFILE: "/nowhere/loopback.xml"},
        {PROFILE: __file__},
        {PROFILE: str(LOOPBACK), "FASTDDS_DEFAULT_PROFILES_FILE": "/nowhere.xml"},
        {PROFILE: str(LOOPBACK), "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"},
    ],
)
def test_what_reaches_the_network(environment):
    assert network_reach(environment) == "network"


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("<address>127.0.0.1</address>", "<address>10.0.0.7</address>"),
        ("<address>127.0.0.1</address>", "<address>127.0.0.1</address><address>10.0.0.7</address>"),
        ("<address>127.0.0.1</address>", ""),
        ("<useBuiltinTransports>false<", "<useBuiltinTransports>true<"),
        ("<useBuiltinTransports>false</useBuiltinTransports>", ""),
        ("<userTransports>", "<userTransports><transport_id>other</transport_id>"),
        ('is_default_profile="true"', ""),
        ("</dds>", ""),
    ],
)
def test_a_profile_that_is_not_of_the_loopback_device_alone(tmp_path, what, instead):
    text = LOOPBACK.read_text()
    profile = tmp_path / "profile.xml"
    profile.write_text(text.replace(what, instead))
    assert profile.read_text() != text
    assert network_reach({PROFILE: str(profile)}) == "network"


def test_hardware_in_reach_of_the_network_needs_somebodys_word(tmp_path):
    board = tmp_path / "ttyUSB0"
    board.touch()
    for environment in ({}, {RANGE: "SUBNET"}):
        with pytest.raises(SoftformError, match=r"ttyUSB0: the discovery range is 'SUBNET'.*loopback.*network:=true"):
            require_local(environment, [str(board)], allowed=False)
    require_local({}, [str(board)], allowed=True)


@pytest.mark.parametrize("environment", [{RANGE: "LOCALHOST"}, {RANGE: "LOCALHOST", PROFILE: str(LOOPBACK)}])
def test_fast_dds_with_localhost_answers_who_names_this_machine(environment, tmp_path):
    board = tmp_path / "ttyUSB0"
    board.touch()
    with pytest.raises(SoftformError, match=r"discovery range is 'LOCALHOST'.*=SYSTEM_DEFAULT.*loopback.xml"):
        require_local(environment, [str(board)], allowed=False)
    require_local(environment | {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, [str(board)], allowed=False)
    for local in ({RANGE: "OFF"}, {PROFILE: str(LOOPBACK)}, {RANGE: "SYSTEM_DEFAULT", PROFILE: str(LOOPBACK)}):
        require_local(local, [str(board)], allowed=False)


def test_a_pseudo_terminal_is_no_hardware_unless_beside_some(tmp_path):
    link = tmp_path / "openpneu"
    link.symlink_to("/dev/pts/7")
    require_local({}, [str(link), "/dev/pts/8"], allowed=False)
    with pytest.raises(SoftformError, match="could command /dev/ttyUSB0: "):
        require_local({}, [str(link), "/dev/ttyUSB0"], allowed=False)
