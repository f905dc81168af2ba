# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge hold` and `drone-bridge resume`: hold vehicles, or let them follow commands again, from a shell."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from std_srvs.srv import SetBool

SERVICE_TYPE = "std_srvs/srv/SetBool"
#: In which a vehicle that is there is found, s.
FINDING_S = 3.0
#: In which its node has to answer, s.
ANSWER_S = 5.0
#: Exit status if a vehicle was not found, did not answer or refused.
FAILED = 1


def hold(argv: Sequence[str]) -> int:
    """Hold the vehicles named in `argv`, or all. Returns the exit status."""
    return _set_all(argv, is_held=True)


def resume(argv: Sequence[str]) -> int:
    """Let the vehicles named in `argv`, or all, follow commands again. Returns the exit status."""
    return _set_all(argv, is_held=False)


def _set_all(argv: Sequence[str], *, is_held: bool) -> int:
    verb = "hold" if is_held else "resume"
    parser = argparse.ArgumentParser(
        prog=f"drone-bridge {verb}",
        description="Hold vehicles: neutral, whatever is commanded, until a person resumes them."
        if is_held
        else "End the hold of vehicles: they follow commands again.",
    )
    parser.add_argument("vehicle", nargs="*", help="a namespace, such as /drone, or a node; all vehicles by default")
    wanted = parser.parse_args(argv).vehicle

    import rclpy  # after the arguments, whose errors need no ROS

    from drone_bridge.ros.program import initialize_ros

    initialize_ros([])
    node = rclpy.create_node("drone_bridge_hold")
    try:
        services = _find(node, wanted)
        if not services:
            there = ", ".join(sorted(map(_vehicle_of, _holds(node)))) or "none"
            asked = " or ".join(wanted) if wanted else "here"
            print(f"No vehicle {asked} can be held; those in this ROS domain: {there}.", file=sys.stderr)
            return FAILED
        return max(_set(node, service, is_held=is_held) for service in services)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def _find(node: Any, wanted: Sequence[str]) -> list[str]:
    """Return the services of the wanted vehicles, once all are found, or no more have come for FINDING_S."""
    end_s = time.monotonic() + FINDING_S
    while True:
        found = _holds(node)
        chosen = {each: [service for service in found if _is_meant(service, each)] for each in wanted}
        if (wanted and all(chosen.values())) or time.monotonic() > end_s:
            break
        time.sleep(0.1)
    missing = [each for each, services in chosen.items() if not services]
    if missing and len(missing) < len(wanted):
        print(f"Not found: {', '.join(missing)}.", file=sys.stderr)
    return sorted({service for services in chosen.values() for service in services}) if wanted else found


def _holds(node: Any) -> list[str]:
    """Return the services that hold a vehicle."""
    names = node.get_service_names_and_types()
    return sorted(name for name, types in names if name.endswith("/hold") and SERVICE_TYPE in types)


def _vehicle_of(service: str) -> str:
    """Return the node of a service."""
    return service.removesuffix("/hold")


def _is_meant(service: str, vehicle: str) -> bool:
    """Return whether a vehicle's namespace, or node, has a service."""
    name = f"/{vehicle.strip('/')}"
    node = _vehicle_of(service)
    return name in (node, node.rpartition("/")[0] or "/")


def _set(node: Any, service: str, *, is_held: bool) -> int:
    """Call a service and print its answer."""
    import rclpy

    client = node.create_client(SetBool, service)
    name = _vehicle_of(service)
    if not client.wait_for_service(ANSWER_S):
        print(f"{name}: gone", file=sys.stderr)
        return FAILED
    call = client.call_async(SetBool.Request(data=is_held))
    rclpy.spin_until_future_complete(node, call, timeout_sec=ANSWER_S)
    if not call.done():
        print(f"{name}: no answer within {ANSWER_S:g} s", file=sys.stderr)
        return FAILED
    response = call.result()
    print(f"{name}: {response.message}", file=sys.stdout if response.success else sys.stderr)
    return 0 if response.success else FAILED
