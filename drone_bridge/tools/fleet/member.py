# SPDX-License-Identifier: Apache-2.0
"""One node of a fleet, with its own executor and thread; restarted when it fails."""

import threading
import traceback
from collections.abc import Mapping

from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter

from drone_bridge.kind import NodeKind, Value
from drone_bridge.ros.program import Stoppable, executor_of

#: Delay before a failed node is restarted, s: doubled each time, up to the longest.
FIRST_RESTART_S = 1.0
LONGEST_RESTART_S = 30.0


class Member:
    """Keeps one node running until it is left. Its failures do not affect the others."""

    def __init__(self, name: str, kind: NodeKind, namespace: str, parameters: Mapping[str, Value]) -> None:
        """Make the node. Raises ValueError, with its name, for parameters that it refuses."""
        self.name = name
        self.restarts = 0
        self._kind, self._namespace, self._parameters = kind, namespace, parameters
        self._left = threading.Event()
        self._changing = threading.Lock()  # of the node, which is left from another thread
        self._executor: SingleThreadedExecutor | None = None
        self._thread: threading.Thread | None = None
        self.node: Stoppable | None = None
        try:
            self.node = self._make()
        except (ParameterException, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error

    def start(self) -> bool:
        """Start the node; return whether it started. One that did not can still be configured through its services."""
        assert self.node
        return self.node.start()

    def prepare(self) -> None:
        """Make the executor and start its thread."""
        assert self.node
        self._executor = executor_of(self.node)
        self._thread = threading.Thread(target=self._serve, name=f"{self.name} executor")
        self._thread.start()

    def leave(self) -> None:
        """Leave the vehicle with a neutral command. May come from any thread, and twice."""
        self._left.set()
        with self._changing:
            if self.node:
                self.node.leave()

    def end_thread(self) -> None:
        """Shut the executor down, and wait for its thread."""
        if self._executor:
            self._executor.shutdown()
        if self._thread:
            self._thread.join()

    def destroy(self) -> None:
        """Destroy the node, after `end_thread`."""
        if self.node:
            assert isinstance(self.node, Node)
            self.node.destroy_node()
            self.node = None

    def _make(self) -> Stoppable:
        overrides = [Parameter(name, value=value) for name, value in self._parameters.items()]
        node: Stoppable = self._kind.make(namespace=self._namespace, parameter_overrides=overrides)
        return node

    def _serve(self) -> None:
        delay_s = FIRST_RESTART_S
        while not self._left.is_set():
            try:
                if self._executor is None and not self._restart():
                    return
                assert self._executor
                self._executor.spin()
                return  # ROS is shut down, or the executor is
            except ExternalShutdownException:
                return
            except Exception:
                if self._left.is_set():
                    return
                logger = get_logger("fleet")
                logger.error(f"{self.name} has failed:\n{traceback.format_exc()}")
                self._abandon_node()
                logger.warning(f"{self.name} is restarted in {delay_s:g} s.")
                if self._left.wait(delay_s):
                    return
                delay_s = min(2 * delay_s, LONGEST_RESTART_S)

    def _restart(self) -> bool:
        with self._changing:
            if self._left.is_set():
                return False
            self.node = self._make()
            self.restarts += 1
            self.node.start()
            self._executor = executor_of(self.node)
        return True

    def _abandon_node(self) -> None:
        """Leave the vehicle, and destroy a node that can't be trusted any more."""
        executor, self._executor = self._executor, None
        with self._changing:
            try:
                if self.node:
                    self.node.leave()
                if executor:
                    executor.shutdown(timeout_sec=0.0)
                self.destroy()
            except Exception:
                get_logger("fleet").error(f"{self.name} could not be shut down cleanly:\n{traceback.format_exc()}")
                self.node = None
