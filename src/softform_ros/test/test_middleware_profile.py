"""What `config/middleware/loopback.xml` promises: UDP on the loopback device alone, no shared memory."""

import psutil

from softform_ros.background_node import BackgroundNode


def test_a_node_listens_on_the_loopback_device_alone_and_shares_no_memory():
    before = {connection.laddr for connection in psutil.Process().net_connections("udp")}
    with BackgroundNode("listener", "/softform"):
        opened = {connection.laddr for connection in psutil.Process().net_connections("udp")} - before
        mapped = [each.path for each in psutil.Process().memory_maps() if each.path.startswith("/dev/shm/fastrtps")]
    assert {address.ip for address in opened} == {"127.0.0.1"}
    assert mapped == []
