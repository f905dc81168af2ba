# SPDX-License-Identifier: Apache-2.0
"""What publishers do about subscribers with an incompatible QoS: nothing, as those log a warning themselves.

By default rclpy logs one here as well, and to know of it the executor looks at two events of each publisher whenever it
wakes up. In a node with a dozen topics that takes longer than to wait for everything else.
"""

from typing import Final

from rclpy.node import PublisherEventCallbacks  # type: ignore[attr-defined] # where humble has it, too

NO_EVENTS: Final = PublisherEventCallbacks(use_default_callbacks=False)
