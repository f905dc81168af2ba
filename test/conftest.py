# SPDX-License-Identifier: Apache-2.0
"""Every test run has DDS to itself, on this machine only, and draws the same examples each time."""

import importlib.util
import os
import random

import pytest
from hypothesis import settings

# Before anything imports rclpy: participants read these when they are made. Domains above 101 would use ports
# that Linux hands out to clients.
os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(1, 101))
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

settings.register_profile("drone_bridge", derandomize=True, deadline=None)
settings.load_profile("drone_bridge")

if importlib.util.find_spec("drone_bridge.msg") is None:
    raise pytest.UsageError("drone_bridge.msg can't be imported: run 'make setup' and '. env/activate' first.")


@pytest.fixture
def ros():
    """A node that spins in a thread: see RosSession."""
    from ros_session import RosSession

    session = RosSession()
    yield session
    session.close()
