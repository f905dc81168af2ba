# SPDX-License-Identifier: Apache-2.0
"""Questions to each bridge whose middleware hangs: what DDS sends waits for seconds, and the vehicle must not.

The middleware is real: a library that is preloaded into the bridge holds up Fast DDS's sockets.
"""

import importlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from processes import TIMEOUT_S, Process
from rclpy.utilities import get_rmw_implementation_identifier
from ros_session import wait_until
from std_srvs.srv import SetBool
from vehicle_pair import COMMAND_TIMEOUT_S, BridgePair, each_kind, shared

SOURCE = Path(__file__).parent.parent / "support" / "slow_middleware.c"
HANGS_S = 3.0
#: How much later than it is due the neutral command may be.
LATE_S = 0.2
ALLOWED_S = COMMAND_TIMEOUT_S + LATE_S


class HangingPair(BridgePair):
    """A bridge whose Fast DDS hangs while a file is there; topics leave it by UDP alone."""

    def __init__(self, kind, domain, scratch):
        if get_rmw_implementation_identifier() != "rmw_fastrtps_cpp":
            pytest.skip("it is Fast DDS that is held up")
        super().__init__(kind, domain, scratch)
        profile = Path(os.environ["FASTDDS_DEFAULT_PROFILES_FILE"]).read_text()
        (scratch / "udp.xml").write_text(
            profile.replace("<transport_id>drone_bridge_shared_memory</transport_id>\n          <", "<")
        )
        library = scratch / "slow_middleware.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self.trigger = scratch / "hang"
        self._environment = {
            "LD_PRELOAD": str(library),
            "SLOW_MIDDLEWARE": str(self.trigger),
            "FASTDDS_DEFAULT_PROFILES_FILE": str(scratch / "udp.xml"),
        }

    def _run(self, role, command):
        return Process(*command, env=self._environment if role == "bridge" else None)

    def listen_to_all(self, session):
        """Subscribe to whatever the bridge publishes, so that all of it is sent."""
        bridge, node = f"{self.kind.name}_bridge", session.node
        wait_until(lambda: bridge in node.get_node_names(), "the bridge")
        for topic, types in node.get_publisher_names_and_types_by_node(bridge, f"/{self.name}"):
            package, _, name = types[0].partition("/msg/")
            session.subscribe(getattr(importlib.import_module(f"{package}.msg"), name), topic)

    def hang(self):
        """Have the middleware hang from now on; return since when."""
        self.trigger.touch()
        return time.monotonic()

    def close(self):
        self.trigger.unlink(missing_ok=True)
        super().close()


kind, pair = each_kind(), shared(HangingPair)


@pytest.fixture(name="driven")
def driven_pair(pair, ros):
    """A pair whose vehicle moves, and whose topics are all listened to."""
    if not pair.program.is_running:
        pair.start_program()
    pair.drive()
    pair.listen_to_all(ros)
    pair.drive()
    yield pair
    pair.trigger.unlink(missing_ok=True)


def assert_neutral_within(pair, since_s, allowed_s):
    """Assert that the last word is neutral by then. What wakes this thread late does so to a bridge's three."""
    worst_s = 0.0
    while (now_s := time.monotonic()) < since_s + allowed_s + 3 * worst_s:
        time.sleep(0.01)
        worst_s = max(worst_s, time.monotonic() - now_s - 0.01)
    said = [(round(when - since_s, 3), is_neutral) for when, is_neutral in pair.commands.since(since_s)]
    assert not pair.commands.is_moving, said[-5:]


def hold(ros, node):
    return ros.node.create_client(SetBool, f"{node}/hold"), SetBool.Request(data=True)


def deactivate(ros, node):
    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    return ros.node.create_client(ChangeState, f"{node}/change_state"), request


@pytest.mark.parametrize("order", [None, hold, deactivate], ids=["nothing", "hold", "deactivate"])
def test_commands_that_end(driven, ros, order):
    """What is ordered then is answered, told to others and logged, all by the middleware."""
    node = f"/{driven.name}/{driven.kind.name}_bridge"
    client, request = order(ros, node) if order else (None, None)
    assert client is None or client.wait_for_service(TIMEOUT_S)
    stopped_s = driven.hang()
    driven.stop()
    answer = client and client.call_async(request)
    assert_neutral_within(driven, stopped_s, ALLOWED_S)
    time.sleep(HANGS_S - ALLOWED_S)
    assert not driven.commands.is_moving
    driven.trigger.unlink()
    if answer:
        wait_until(answer.done, "the answer")
    if order is hold:
        ros.call(SetBool, f"{node}/hold", SetBool.Request(data=False))
    elif order is deactivate:
        ros.transition(node, "activate")
    driven.drive()


def test_a_signal(driven):
    asked_s = driven.hang()
    driven.program.send(signal.SIGTERM)
    assert_neutral_within(driven, asked_s, 2 * LATE_S)
    driven.trigger.unlink()
    assert driven.program.wait() == 0
