# SPDX-License-Identifier: Apache-2.0
"""Publishers that ignore subscribers with an incompatible QoS, as those log a warning themselves.

By default rclpy logs one here as well, for which the executor checks two events of each publisher whenever it wakes up.
In a node with a dozen topics that takes longer than waiting for everything else.
"""

from typing import Final

from rclpy.node import PublisherEventCallbacks  # type: ignore[attr-defined] # where humble has it, too

NO_EVENTS: Final = PublisherEventCallbacks(use_default_callbacks=False)
