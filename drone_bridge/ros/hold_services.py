# SPDX-License-Identifier: Apache-2.0
"""HoldServices: finds the services by which vehicles are held and released, and calls them."""

from collections.abc import Callable
from typing import Any

from std_srvs.srv import SetBool

SERVICE_TYPE = "std_srvs/srv/SetBool"
_ENDING = "/hold"


def node_of(service: str) -> str:
    """Return the full name of the node with a service of hold."""
    return service.removesuffix(_ENDING)


def is_of(service: str, vehicle: str) -> bool:
    """Return whether a service of hold is that of a vehicle, which is a namespace or the full name of a node."""
    name, node = f"/{vehicle.strip('/')}", node_of(service)
    return name in (node, node.rpartition("/")[0] or "/")


class HoldServices:
    """The wanted services as far as they were found. A caller looks for them, and calls them, again and again."""

    def __init__(self, node: Any, is_wanted: Callable[[str], bool]) -> None:
        """`is_wanted` says of the full name of a service whether it is to be called."""
        self._node, self._is_wanted = node, is_wanted
        self._clients: dict[str, Any] = {}

    @property
    def found(self) -> tuple[str, ...]:
        """The full names of those that were found."""
        return tuple(self._clients)

    def all(self) -> list[str]:
        """Return the full names of all services of hold in this ROS domain."""
        names = self._node.get_service_names_and_types()
        return sorted(name for name, types in names if name.endswith(_ENDING) and SERVICE_TYPE in types)

    def find(self) -> bool:
        """Look for further ones; return whether there are any, and all can be called."""
        for name in self.all():
            if name not in self._clients and self._is_wanted(name):
                self._clients[name] = self._node.create_client(SetBool, name)
        return bool(self._clients) and all(client.service_is_ready() for client in self._clients.values())

    def call(self, is_held: bool, calls: dict[str, Any]) -> bool:
        """Call each that can be called and has no call yet, so that none waits for another; return whether any was.

        `calls` are futures by the service's name.
        """
        ready = [name for name, client in self._clients.items() if name not in calls and client.service_is_ready()]
        for name in ready:
            calls[name] = self._clients[name].call_async(SetBool.Request(data=is_held))
        return bool(ready)
