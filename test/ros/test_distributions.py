# SPDX-License-Identifier: Apache-2.0
"""What rclpy's nodes lack on Humble."""

from types import SimpleNamespace

import pytest

from drone_bridge.ros import distributions
from drone_bridge.ros.distributions import count_clients, count_services

HELD = "/d1/bridge/hold"


class HumbleNode:
    """Graph of two nodes with the service, one without, and one that has just ended."""

    def get_node_names_and_namespaces(self):
        return [("bridge", "/d1"), ("twin", "/d1"), ("other", "/"), ("ended", "/")]

    def get_service_names_and_types_by_node(self, name, namespace):
        if name == "ended":
            raise RuntimeError("no such node")
        return [(HELD if namespace == "/d1" else "/other/hold", ["std_srvs/srv/Trigger"])]

    def get_client_names_and_types_by_node(self, name, namespace):
        return [(HELD, ["std_srvs/srv/Trigger"])] if name == "other" else []


def test_servers_and_clients_are_counted_on_humble():
    node = HumbleNode()
    assert count_services(node, HELD) == 2
    assert count_services(node, "/hold") == 0
    assert count_clients(node, HELD) == 1


def test_servers_and_clients_are_counted_by_rclpy():
    node = SimpleNamespace(count_services=lambda name: 3, count_clients=lambda name: 4)
    assert (count_services(node, HELD), count_clients(node, HELD)) == (3, 4)


@pytest.mark.parametrize(
    ("has_info", "arguments"), [(False, ("message",)), (True, ("message", {"source_timestamp": 1}))]
)
def test_a_callback_is_called_with_the_arguments_of_each_rclpy(monkeypatch, has_info, arguments):
    monkeypatch.setattr(distributions, "HAS_MESSAGE_INFO", has_info)
    received = []
    distributions.with_info(lambda *both: received.append(both))(*arguments)
    assert received == [("message", {"source_timestamp": 1} if has_info else {})]


def test_parameters_are_followed_without_callbacks_on_humble():
    node = SimpleNamespace()
    assert distributions.call_after_set(node, print) is None
    distributions.call_before_set(node, print)
