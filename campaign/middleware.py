# SPDX-License-Identifier: Apache-2.0
"""Bridges whose middleware hangs for seconds: the vehicle gets its neutral command all the same.

The middleware is real: a library that is preloaded into the bridge holds up whatever Fast DDS sends. What is ordered
meanwhile is answered, told to others and logged, all by the middleware.
"""

import importlib
import itertools
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from processes import TIMEOUT_S, Process
from rclpy.utilities import get_rmw_implementation_identifier
from ros_session import RosSession, wait_until
from std_srvs.srv import SetBool
from step import NotHereError, Verdict
from vehicle_pair import BridgePair

from drone_bridge.kind import ProtocolKind, kinds

SOURCE = Path(__file__).parent / "slow_middleware.c"
HANGS_S = 3.0  # shorter than each of its sends waits
FAULT = "its middleware hangs"


class HangingPair(BridgePair):  # type: ignore[misc]
    """A bridge whose Fast DDS hangs while a file is there; topics leave it by UDP alone."""

    def __init__(self, kind: ProtocolKind, domain: int, scratch: Path, library: Path) -> None:
        super().__init__(kind, domain, scratch)
        profile = Path(os.environ["FASTDDS_DEFAULT_PROFILES_FILE"]).read_text()
        udp = scratch / "udp.xml"
        udp.write_text(profile.replace("<transport_id>drone_bridge_shared_memory</transport_id>\n          <", "<"))
        self.trigger = scratch / "hang"
        self.node = f"/{self.name}/{kind.name}_bridge"
        self._environment = {
            "LD_PRELOAD": str(library),
            "SLOW_MIDDLEWARE": str(self.trigger),
            "FASTDDS_DEFAULT_PROFILES_FILE": str(udp),
        }

    def _run(self, role: str, command: list[str]) -> Any:
        return Process(*command, env=self._environment if role == "bridge" else None)

    def listen_to_all(self, session: Any) -> None:
        """Subscribe to whatever the bridge publishes, so that all of it is sent."""
        bridge, node = self.node.rpartition("/")[2], session.node
        wait_until(lambda: bridge in node.get_node_names(), "the bridge")
        for topic, types in node.get_publisher_names_and_types_by_node(bridge, f"/{self.name}"):
            package, _, name = types[0].partition("/msg/")
            session.subscribe(getattr(importlib.import_module(f"{package}.msg"), name), topic)

    def hang(self) -> float:
        """Have the middleware hang from now on; return since when."""
        self.trigger.touch()
        return time.monotonic()

    def close(self) -> None:
        self.trigger.unlink(missing_ok=True)
        super().close()


def client_of(order: str, pair: HangingPair, session: Any) -> tuple[Any, Any]:
    """Return who calls a service of the bridge's node, and the request; (None, None) for what is no service."""
    if order == "hold":
        client, request = session.node.create_client(SetBool, f"{pair.node}/hold"), SetBool.Request(data=True)
    elif order == "deactivate":
        client = session.node.create_client(ChangeState, f"{pair.node}/change_state")
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    else:
        return None, None
    assert client.wait_for_service(TIMEOUT_S), f"no service for {order}"
    return client, request


def neutral_after(said: list[tuple[float, bool]], since_s: float) -> float | None:
    """Return how long after a moment a neutral command came as the last word; None if it did not."""
    after_the_last = list(itertools.takewhile(lambda command: command[1], reversed(said)))
    return after_the_last[-1][0] - since_s if after_the_last else None


def hang_while(order: str, pair: HangingPair, session: Any, verdict: Verdict) -> float:
    """Have the commands end and order something while the middleware hangs; return when the vehicle is neutral, s."""
    if not pair.program.is_running:
        pair.start_program()
        pair.listen_to_all(session)
    pair.drive()
    client, request = client_of(order, pair, session)
    since_s = pair.hang()
    if order == "SIGTERM":  # while commands go on
        pair.program.send(signal.SIGTERM)
    else:
        pair.stop()
    answer = client and client.call_async(request)
    time.sleep(HANGS_S)
    said = pair.commands.since(since_s)
    neutral_s = neutral_after(said, since_s)
    last = [(round(when - since_s, 2), is_neutral) for when, is_neutral in said[-5:]]
    verdict.stopped(neutral_s is not None, f"{pair.name}, {order}, while {FAULT}: its last commands are {last}")
    pair.trigger.unlink()
    if answer:
        wait_until(answer.done, "the answer")
    if order == "hold":
        session.call(SetBool, f"{pair.node}/hold", SetBool.Request(data=False))
    elif order == "deactivate":
        session.transition(pair.node, "activate")
    elif order == "SIGTERM":
        pair.stop()
        print(f"{pair.name} ended with {pair.program.wait()}")
    return HANGS_S if neutral_s is None else neutral_s


def main(short: bool) -> int:
    """Ask each bridge, and print when its vehicle gets the neutral command."""
    if get_rmw_implementation_identifier() != "rmw_fastrtps_cpp":
        raise NotHereError("It is Fast DDS that is held up, and another middleware is in use.")
    verdict, longest_s = Verdict(), dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "slow_middleware.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        for kind in (each for each in kinds().values() if each.commands):
            scratch = Path(folder, kind.name)
            scratch.mkdir()
            pair, session = HangingPair(kind, int(os.environ["ROS_DOMAIN_ID"]), scratch, library), RosSession()
            try:
                pair.start()
                pair.listen_to_all(session)
                for order in ("nothing", "hold", "deactivate", "SIGTERM") * (1 if short else 5):
                    neutral_s = hang_while(order, pair, session, verdict)
                    print(f"{pair.name}, {order}: neutral after {neutral_s:.2f} s", flush=True)
                    longest_s[order] = max(neutral_s, longest_s.get(order, 0.0))
            finally:
                pair.close()
                session.close()
    words = ", ".join(f"{order} {neutral_s:.2f} s" for order, neutral_s in longest_s.items())
    verdict.figure(f"neutral while {FAULT}, at most after: {words}")
    return verdict.status
