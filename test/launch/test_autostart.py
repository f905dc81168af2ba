# SPDX-License-Identifier: Apache-2.0
"""Automatic start of a node: retries, and the report until it succeeds. Without ROS."""

from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn

from drone_bridge.net.connector import LinkError
from drone_bridge.ros.node.autostart import Autostart

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class Node:
    """Fails to configure or to activate under control of the test; `pass_period` is its timer's callback."""

    def __init__(self):
        self.failures, self.done, self.errors, self.statuses = {}, [], [], []
        self.parameters = SimpleNamespace(values=lambda: dict(self.settings), refused={}, are_frozen=False)
        self.settings = {"port": 1}
        status = SimpleNamespace(name="node: link", publish=self.statuses.append)
        self.autostart = Autostart(self, self.parameters, status, lambda: f"node {self.settings['port']}")
        self.trigger_configure = lambda: self._transit("configure", True)
        self.trigger_activate = lambda: self._transit("activate", True)
        self.trigger_cleanup = lambda: self._transit("cleanup", False)

    def _transit(self, name, is_configured):
        self.done.append(name)
        if failure := self.failures.get(name):
            assert self.autostart.takes(failure)
            return FAILURE
        self.parameters.are_frozen = is_configured
        return SUCCESS

    def get_logger(self):
        return SimpleNamespace(error=self.errors.append)

    def create_timer(self, period_s, call, callback_group, clock):
        self.pass_period, self.is_over = call, False
        return SimpleNamespace(cancel=lambda: setattr(self, "is_over", True))


@pytest.fixture
def node():
    return Node()


def test_a_start_that_works_needs_no_timer(node):
    node.autostart.start()
    assert (node.done, node.errors, hasattr(node, "pass_period")) == (["configure", "activate"], [], False)
    assert not node.autostart.takes(ValueError("of a transition that somebody requests"))


def test_a_port_in_use_is_retried_until_it_is_free(node):
    node.failures["activate"] = LinkError("taken")
    node.autostart.start()
    node.pass_period()
    assert node.done == 2 * ["configure", "activate", "cleanup"]
    (error,) = node.errors  # instead of one for each attempt
    assert "taken" in error
    (status,) = node.statuses
    assert (status.level, status.hardware_id) == (DiagnosticStatus.ERROR, "node 1")
    assert "taken" in status.message
    node.failures.clear()
    node.pass_period()
    assert node.is_over
    assert len(node.statuses) == 1


def test_a_refused_parameter_is_retried_after_a_change(node):
    node.failures["configure"] = ValueError("port is 1")
    node.autostart.start()
    for _ in range(3):
        node.pass_period()
    assert node.done == ["configure"]
    node.settings["port"] = 2
    node.pass_period()
    assert node.done == ["configure", "configure"]
    assert [each.hardware_id for each in node.statuses] == ["node 1", "node 1", "node 1", "node 2"]


def test_a_node_that_somebody_configures_is_left_alone(node):
    node.failures["configure"] = ValueError("port is 1")
    node.autostart.start()
    node.parameters.are_frozen = True
    node.pass_period()
    assert (node.is_over, node.statuses, node.done) == (True, [], ["configure"])
