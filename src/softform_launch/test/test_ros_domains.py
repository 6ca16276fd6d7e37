"""Stacks in other ROS domains are found, and a command's own stack goes where nobody is."""

import os

import psutil

from softform_launch.ros_domains import domains_of_stacks, enter_domain_of_its_own


class Process:
    def __init__(self, words, domain):
        self.cmdline, self.environ = lambda: words, lambda: {"ROS_DOMAIN_ID": domain}


class Foreign:
    def cmdline(self):
        raise psutil.AccessDenied


def test_stacks_in_other_domains_are_found(monkeypatch):
    stack = ["python", "lib/softform_bringup/bringup_manager_node"]
    found = [Process(stack, "42"), Process(["bash"], "9"), Foreign(), Process(stack, ""), Process(stack, "42")]
    monkeypatch.setattr(psutil, "process_iter", lambda: found)
    assert domains_of_stacks() == [0, 42]


def test_a_commands_own_domain_is_nobodys(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "3")
    others = [Process(["node"], str(domain)) for domain in range(102) if domain != 77]
    monkeypatch.setattr(psutil, "process_iter", lambda: [Foreign(), Process(["word"], "none"), *others])
    enter_domain_of_its_own()
    assert os.environ["ROS_DOMAIN_ID"] == "77"


def test_a_command_goes_on_where_all_domains_are_in_use(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "0")
    monkeypatch.setattr(psutil, "process_iter", lambda: [Process(["node"], str(domain)) for domain in range(102)])
    enter_domain_of_its_own()
    assert 1 <= int(os.environ["ROS_DOMAIN_ID"]) <= 101
