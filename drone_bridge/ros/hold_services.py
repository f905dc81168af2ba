# SPDX-License-Identifier: Apache-2.0
"""HoldServices: discovers and calls the services that hold and release vehicles, and follows their reports."""

from collections.abc import Callable
from typing import Any

from std_srvs.srv import SetBool

from drone_bridge.msg import HoldStatus
from drone_bridge.ros.qos import latched

SERVICE_TYPE = "std_srvs/srv/SetBool"
_ENDING = "/hold"
#: Time after a request to resume in which it is repeated if it was refused as stale, s.
RESUME_S = 3.0


def node_of(service: str) -> str:
    """Return the full name of the node that offers a hold service."""
    return service.removesuffix(_ENDING)


def is_of(service: str, vehicle: str) -> bool:
    """Return whether a hold service belongs to a vehicle, named by its namespace or its node's full name."""
    name, node = f"/{vehicle.strip('/')}", node_of(service)
    return name in (node, node.rpartition("/")[0] or "/")


def hold_of(status: HoldStatus) -> tuple[object, ...]:
    """Return what identifies a hold: a refused request to resume is repeated only for the same one."""
    return status.run, status.held, status.since.sec, status.since.nanosec, status.reason, status.wish, status.releases


class HoldServices:
    """Clients of the wanted services. The caller polls `find` and `call`."""

    def __init__(self, node: Any, is_wanted: Callable[[str], bool]) -> None:
        """`is_wanted` returns whether to call a service, by its full name."""
        self._node, self._is_wanted = node, is_wanted
        self._clients: dict[str, Any] = {}

    @property
    def found(self) -> tuple[str, ...]:
        """Full names of the discovered services."""
        return tuple(self._clients)

    def all(self) -> list[str]:
        """Return the full names of all hold services in this ROS domain."""
        names = self._node.get_service_names_and_types()
        return sorted(name for name, types in names if name.endswith(_ENDING) and SERVICE_TYPE in types)

    def find(self) -> bool:
        """Create clients for newly discovered services. Return True if there are any and all are ready."""
        for name in self.all():
            if name not in self._clients and self._is_wanted(name):
                self._clients[name] = self._node.create_client(SetBool, name)
        return bool(self._clients) and all(client.service_is_ready() for client in self._clients.values())

    def call(
        self, is_held: bool, calls: dict[str, Any], is_wanted: Callable[[str], bool] = lambda service: True
    ) -> bool:
        """Call, without waiting, each ready and wanted service that has no call yet. Return whether there was any.

        `calls` collects the futures by service name.
        """
        waiting = [name for name in self._clients if name not in calls and is_wanted(name)]
        ready = [name for name in waiting if self._clients[name].service_is_ready()]
        for name in ready:
            calls[name] = self._clients[name].call_async(SetBool.Request(data=is_held))
        return bool(ready)


class HoldReports:
    """Newest reports of nodes about their hold, on ~/hold_status."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._subscriptions: dict[str, Any] = {}
        self._holds: dict[str, tuple[object, ...]] = {}

    def hold(self, service: str) -> tuple[object, ...] | None:
        """Return the reported hold of the node that offers a service, see `hold_of`; None before its first report."""
        if service not in self._subscriptions:

            def take(status: HoldStatus) -> None:
                self._holds[service] = hold_of(status)

            topic = f"{node_of(service)}/hold_status"
            self._subscriptions[service] = self._node.create_subscription(HoldStatus, topic, take, latched())
        return self._holds.get(service)
