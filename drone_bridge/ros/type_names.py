# SPDX-License-Identifier: Apache-2.0
"""Types of topics and services, as text."""

from collections.abc import Iterable
from typing import Any


def name_of_type(message_type: type) -> str:
    """Return package/msg/Name, or package/srv/Name of a service."""
    package, kind, *_ = message_type.__module__.split(".")
    return f"{package}/{kind}/{message_type.__name__}"


def endpoints_by_type(endpoints: Iterable[Any]) -> str:
    """Return the nodes of endpoints, each with its type; empty if there are none."""
    names = {f"{each.node_namespace.rstrip('/')}/{each.node_name} ({each.topic_type})" for each in endpoints}
    return " and ".join(sorted(names))
