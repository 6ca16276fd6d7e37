"""Find from where the ROS nodes of an environment can be reached, and which ports they may drive."""

import os
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from softform_core.errors import SoftformError

Reach = Literal["this machine", "network"]

_FAST_DDS = ("", "rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp")
_PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")  # the first that is set counts
_PEERS = ("ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
_TERMINALS = "/dev/pts/"


def network_reach(environment: Mapping[str, str]) -> Reach:
    """Return whether nodes that start in an environment look for others, or listen to them, beyond this machine.

    They do not with ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST or OFF and no peers elsewhere, nor with a profile of Fast
    DDS whose participants use loopback addresses alone. What is unset, unknown or unreadable counts as the network.
    """
    if environment.get("RMW_IMPLEMENTATION", "") in _FAST_DDS:
        file = next((environment[name] for name in _PROFILES if environment.get(name)), "")
        # With LOCALHOST the middleware puts addresses of its own in the place of the profile's.
        if file and environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE") != "LOCALHOST" and _is_loopback(Path(file)):
            return "this machine"
    peers = [peer for name in _PEERS for peer in environment.get(name, "").split(";") if peer]
    is_local = environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE") in ("LOCALHOST", "OFF")
    is_local = is_local or environment.get("ROS_LOCALHOST_ONLY") == "1"
    return "this machine" if is_local and all(_is_here(peer) for peer in peers) else "network"


def require_local(environment: Mapping[str, str], ports: Iterable[str], allowed: bool) -> None:
    """Reject hardware that the network can reach.

    Args:
        environment: Environment of the process.
        ports: Ports of the devices; a pseudo-terminal, as the virtual rig has them, drives no hardware.
        allowed: Whether the user allows the network to reach them.

    Raises:
        SoftformError: If it can, and nobody has.
    """
    hardware = [port for port in ports if not os.path.realpath(port).startswith(_TERMINALS)]
    if hardware and not allowed and (network_reach(environment) == "network" or _answers_strangers(environment)):
        raise SoftformError(
            f"Other computers of the network could command {', '.join(hardware)}: the discovery range is "
            f"'{environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE') or 'SUBNET'}', without a loopback profile.",
            "Launch it with ./softform launch, or set ROS_AUTOMATIC_DISCOVERY_RANGE=SYSTEM_DEFAULT and "
            "FASTRTPS_DEFAULT_PROFILES_FILE=config/middleware/loopback.xml; or network:=true if they may "
            "(docs/security.md).",
        )


def _answers_strangers(environment: Mapping[str, str]) -> bool:
    """Return whether LOCALHOST is the only guard: Fast DDS then answers whoever names this machine."""
    if environment.get("RMW_IMPLEMENTATION", "") not in _FAST_DDS:
        return False
    ranged = environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    return ranged == "LOCALHOST" or (ranged != "OFF" and environment.get("ROS_LOCALHOST_ONLY") == "1")


def _is_here(address: str) -> bool:
    """Return whether an address, with or without a port, is this machine's loopback device."""
    host = address.strip()
    host = host.rpartition(":")[0] if host.count(":") == 1 else host
    try:
        return host in ("localhost", "lo") or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_loopback(file: Path) -> bool:
    """Return whether a file's default participant profile uses transports of loopback addresses alone."""
    try:
        root = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError, ValueError):
        return False
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without its name space
    transports = {one.findtext("transport_id"): one for one in root.iter("transport_descriptor")}
    defaults = [one for one in root.iter("participant") if one.get("is_default_profile") == "true"]
    if len(defaults) != 1 or defaults[0].findtext("rtps/useBuiltinTransports") != "false":
        return False
    used = [transports.get(one.text) for one in defaults[0].iterfind("rtps/userTransports/transport_id")]
    addresses = [[each.text or "" for each in one.iterfind("interfaceWhiteList/*")] for one in used if one is not None]
    return bool(used) and len(addresses) == len(used) and all(one and all(map(_is_here, one)) for one in addresses)
