# SPDX-License-Identifier: Apache-2.0
"""Topics of simulator_bridge, for the baseline and the subscriber."""

from simulator_peer import ENTITIES

VEHICLE = 0
OTHERS = range(1, ENTITIES)


def name(entity: int) -> str:
    """Return the default name of an entity."""
    return f"entity_{entity}"


def pose_topic(entity: int) -> str:
    """Return the topic of an entity's pose."""
    return f"entities/{name(entity)}/pose"


def twist_topic(entity: int) -> str:
    """Return the topic of an entity's velocities."""
    return f"entities/{name(entity)}/twist"
