# SPDX-License-Identifier: Apache-2.0
"""Recording: the recorder as a child process of web_bridge, controlled from the page."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_prefix
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import SetBool

from drone_bridge.ros.node.parameter_files import parameter_arguments
from drone_bridge.ros.process.log_pipe import original_output
from drone_bridge.ros.qos import latched
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.tools.record.settings import new_bag

START_TIMEOUT_S = 9.0  # less than that of the page's calls; a loaded machine imports for 5 s
STOP_TIMEOUT_S = 5.0  # the recorder itself needs at most 2 s
POLL_PERIOD_S = 0.05


class Recording:
    """Offers `~/record`, and publishes the folder on `~/recording`, latched; empty while not recording."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._child: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._is_stopping = False
        self._publisher = node.create_publisher(String, "~/recording", latched())
        # Stopping takes time, in which the node's other callbacks run, such as those that hold vehicles.
        node.create_service(SetBool, "~/record", self._record, callback_group=ReentrantCallbackGroup())
        self._publish()

    def update(self) -> None:
        """Detect a recorder that has exited by itself."""
        if self._child and not self._is_stopping and self._child.poll() is not None:
            if self._child.returncode != 1:  # else it has logged the reason itself, such as a full disk
                self._node.get_logger().error(f"The recorder exited unexpectedly with status {self._child.returncode}.")
            self._end()

    def close(self) -> None:
        """Stop the recorder, so that the bag is complete."""
        if child := self._child:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            self._end()

    async def _record(self, request: SetBool.Request, response: SetBool.Response) -> Any:
        self.update()
        if self._is_stopping:
            response.success, response.message = False, f"The recording into '{self._folder}' is being completed."
        elif request.data and self._child:
            response.success, response.message = False, f"Already recording into '{self._folder}'."
        elif request.data and not os.access((folder := new_bag()).parent, os.W_OK):
            response.success, response.message = False, f"The folder '{folder.parent}' for the bag is not writable."
        elif request.data:
            response.success, response.message = await self._start(folder)
        elif self._child:
            response.success, response.message = await self._stop(self._child)
        else:
            response.success, response.message = False, "There is no recording."
        return response

    async def _start(self, folder: Path) -> tuple[bool, str]:
        """Start the recorder. Return whether it records, and a sentence."""
        program = os.path.join(get_package_prefix("drone_bridge"), "lib", "drone_bridge", "recorder")
        out, err = original_output()
        # In its own session: the node forwards a Ctrl-C at the terminal.
        try:
            self._child = child = subprocess.Popen(
                [program, "--ros-args", *parameter_arguments({"bag": str(folder), "exclude": self._raw_images()})],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                stdout=out,
                stderr=err,
                env={**os.environ, LAUNCHED: "1"},  # it ends if this node is killed
            )
        except OSError as error:  # such as too little memory
            return False, f"The recorder can't be started: {error.strerror}."
        self._folder = str(folder)
        end_at = time.monotonic() + START_TIMEOUT_S
        await self._until(lambda: folder.exists() or self._child is not child or time.monotonic() >= end_at)
        if self._child is not child:
            return False, "The recorder has ended: see its lines in the terminal."
        self._publish()
        return True, f"Recording into '{folder}'."

    def _raw_images(self) -> str:
        """Return a regular expression for raw images that are also available compressed, at a tenth of the size."""
        names = {name for name, _ in self._node.get_topic_names_and_types()}
        raw = [re.escape(name) for name in sorted(names) if f"{name}/compressed" in names]
        return f"^({'|'.join(raw)})$" if raw else ""

    async def _stop(self, child: "subprocess.Popen[bytes]") -> tuple[bool, str]:
        """Stop the recorder. Return whether the bag is complete, and a sentence."""
        child.send_signal(signal.SIGINT)
        folder, self._is_stopping = self._folder, True
        kill_at = time.monotonic() + STOP_TIMEOUT_S

        def has_ended() -> bool:
            if time.monotonic() >= kill_at:
                child.kill()
            return child.poll() is not None

        await self._until(has_ended)
        self._end()
        if child.returncode:
            return False, f"The recording into '{folder}' is not complete: see the recorder's lines in the terminal."
        return True, f"Recorded into '{folder}'."

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        """Wait, while the node's other callbacks run."""
        reached: Future[None] = Future(executor=self._node.executor)

        def poll() -> None:
            if is_reached():
                self._node.destroy_timer(timer)
                reached.set_result(None)

        timer = steady_timer(self._node, POLL_PERIOD_S, poll)
        await reached

    def _end(self) -> None:
        self._child, self._folder, self._is_stopping = None, "", False
        self._publish()

    def _publish(self) -> None:
        self._publisher.publish(String(data=self._folder))
