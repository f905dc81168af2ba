# SPDX-License-Identifier: Apache-2.0
"""Calls a service of a bridge repeatedly, without pauses.

For each line of standard input, which has the duration in seconds, it prints a line of JSON with the duration of each
call, s.
"""

import argparse
import json
import sys
import time

import rclpy
from nodes import ros
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor

from drone_bridge.srv import SimulatorRequest

TIMEOUT_S = 10.0


def main() -> int:
    """Run until the end of standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    arguments = parser.parse_args()
    with ros(is_interrupted=True):
        node = rclpy.create_node("benchmark_caller", namespace=arguments.namespace)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        client: Client[SimulatorRequest.Request, SimulatorRequest.Response] = node.create_client(
            SimulatorRequest, "simulator_bridge/reassure"
        )
        for line in sys.stdin:
            if not client.wait_for_service(TIMEOUT_S):
                raise TimeoutError("No node offers reassure.")
            end_s = time.monotonic() + float(line)
            took_s = []
            while (began_s := time.monotonic()) < end_s:
                future = client.call_async(SimulatorRequest.Request())
                executor.spin_until_future_complete(future, TIMEOUT_S)
                answer = future.result()
                if answer is None or not answer.success:
                    raise RuntimeError(f"The response of reassure is {answer}.")
                took_s.append(time.monotonic() - began_s)
            print(json.dumps(took_s), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
