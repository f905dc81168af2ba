# SPDX-License-Identifier: Apache-2.0
"""Durations of the discovery of a ROS domain, for tools that inspect it once and end."""

import os

#: Time without a new node or endpoint after which discovery counts as complete, s. Each participant announces itself
#: within it.
QUIET_S = 3.0
#: Timeout of the discovery of a named node, topic or vehicle, or of the first one, on the busiest machine, s. Longer in
#: tests, of which several run at a time.
DISCOVERY_S = float(os.environ.get("DRONE_BRIDGE_DISCOVERY_SECONDS", "10"))
