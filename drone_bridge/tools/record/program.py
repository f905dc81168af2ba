# SPDX-License-Identifier: Apache-2.0
"""Record topics into an MCAP bag, for `ros2 bag play` and other programs that read bags."""

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drone_bridge.stop_signals import handle_stop_signals
from drone_bridge.tools.columns import in_columns

if TYPE_CHECKING:
    from drone_bridge.tools.record.bag import BagWriter, WrittenTopic
    from drone_bridge.tools.record.node import Recorder

# Limits of the shutdown, which takes well below 2 s together with that of the node.
DRAIN_LIMIT_S = 0.3  # CPU time to drain received messages after the signal
WRITE_LIMIT_S = 1.2  # time to write the queued messages to the disk afterwards


@dataclass(slots=True)
class StopRequest:
    """Flag that signals and the writer set. It has no lock, since signal handlers must not take locks."""

    is_set: bool = False

    def set(self) -> None:
        """Request the recorder to stop."""
        self.is_set = True


def main(args: list[str] | None = None) -> int:
    """Record until a stop signal. Returns the exit status: 0, or 1 when the bag is not as requested."""
    stop = StopRequest()
    # Before the slow imports, and instead of rclpy's handlers, which shut down before the queues are drained.
    handle_stop_signals(stop.set)
    from rclpy.utilities import remove_ros_args

    from drone_bridge.ros.node.program import START_ERRORS, initialize_ros, print_start_error, shut_down_ros
    from drone_bridge.ros.process import log_pipe, watchdog
    from drone_bridge.ros.process.environment import ask_for_all_topics
    from drone_bridge.standard_files import open_closed_files

    open_closed_files()
    log_pipe.start()
    arguments = sys.argv if args is None else [sys.argv[0], *args]
    parser = argparse.ArgumentParser(description=__doc__, epilog="drone-bridge run recorder --ros-args -p bag:=flight")
    try:
        parser.parse_args(remove_ros_args(arguments)[1:])
        ask_for_all_topics()
        initialize_ros(arguments)
    except START_ERRORS as error:  # of the arguments
        print_start_error(error)
        return 1
    try:
        from drone_bridge.tools.record.node import Recorder

        node = Recorder()
        try:
            return record(node, stop)
        finally:
            watchdog.limit_shutdown()
            node.destroy_node()
    finally:
        shut_down_ros()


def record(node: "Recorder", stop: StopRequest) -> int:
    """Record with the node until stopped, and return the exit status."""
    from rclpy.exceptions import ParameterException

    from drone_bridge.tools.record.background import BackgroundWriter
    from drone_bridge.tools.record.bag import BagWriteError, BagWriter
    from drone_bridge.tools.record.settings import read_settings

    try:
        settings = read_settings(node)
        bag = BagWriter(settings.bag, compress=settings.compress, min_free_mb=settings.min_free_mb)
    except (ParameterException, ValueError, BagWriteError) as error:
        node.get_logger().error(str(error))
        return 1
    node.get_logger().info(f"Recording into '{bag.path}'.")
    writer = BackgroundWriter(bag, on_failure=stop.set)
    try:
        node.record(settings, writer.put)
        spin(node, stop)
    finally:
        try:
            writer.close(WRITE_LIMIT_S, node.topics)
            status = 0
            print(summary(bag, node.topics), flush=True)
        except BagWriteError as error:
            node.get_logger().error(str(error))
            status = 1
    missing = settings.topics - node.recorded.keys()
    if missing:
        node.get_logger().warning(f"Never published, or not recordable: {', '.join(sorted(missing))}.")
    return status


def spin(node: "Recorder", stop: StopRequest) -> None:
    """Receive until stopped, then drain the messages that have already arrived."""
    from rclpy.executors import SingleThreadedExecutor

    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not stop.is_set:
        executor.spin_once()  # returns with the node's timers at the latest
    node.stop()
    limit = time.thread_time() + DRAIN_LIMIT_S
    while node.take_all() and time.thread_time() < limit:
        pass
    executor.remove_node(node)


def summary(bag: "BagWriter", topics: Iterable["WrittenTopic"]) -> str:
    """Return a table with the number of recorded and dropped messages of each topic."""
    rows = [("topic", "type", "messages", "dropped")]
    for topic in topics:
        count = bag.count(topic)
        rows.append((topic.name, topic.type_name, str(count), str(topic.received - count)))
    return f"{in_columns(rows, texts=2)}\n{bag.message_count} messages in {bag.path}"
