# SPDX-License-Identifier: Apache-2.0
"""drone-bridge play: play back a bag with its recorded timing and QoS.

  drone-bridge play demo/bag --rate 2
  drone-bridge play flight --topics /odom /tf --remap /odom:=/recorded/odom --clock

Topics that another node or an earlier player publishes, or by which it would command a live vehicle, are left out with
a message, unless --topics or --remap names them. Gaps of more than a minute without messages are skipped.

`drone-bridge view <bag>` plays it with a timeline.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drone_bridge.programs.options import not_negative, positive
from drone_bridge.ros.node.simulated_time import CLOCK_TOPIC, clock_conflict
from drone_bridge.ros.process.log_pipe import NO_FILE_OF_RCL
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.stop_signals import handle_stop_signals
from drone_bridge.tools.command_parser import AS_WRITTEN, CommandParser

if TYPE_CHECKING:
    from rclpy.node import Node

    from drone_bridge.tools.bags.bag import BagReader, BagTopic
    from drone_bridge.tools.play.player import Span

CLOCK_HZ = 100.0


def main(argv: Sequence[str]) -> int:
    """Play a bag. Return the exit status: 1 if there is nothing to play, or the bag can't be read."""
    options = _parse(argv)
    from drone_bridge.tools.bags.bag import run_on_bag

    return run_on_bag("play", options.bag, lambda bag: _play(bag, options))


def _play(bag: "BagReader", options: argparse.Namespace) -> int:
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from drone_bridge.ros.node.program import shut_down_ros
    from drone_bridge.ros.publishers import wait_for_delivery
    from drone_bridge.tools.play.live import GuardedPublisher, LiveTopics
    from drone_bridge.tools.play.player import Player
    from drone_bridge.tools.play.publishers import is_latched, make_publishers

    topics = _chosen(bag, options)
    span = _span(bag, options)
    rclpy.init(args=NO_FILE_OF_RCL, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node("player", use_global_arguments=False)
        publishers = make_publishers(node, topics, dict(options.remap), _print)
        if not any(topic.count for topic in publishers):
            print(f"drone-bridge play: '{options.bag}' has nothing to play.", file=sys.stderr)
            return 1
        live = LiveTopics(node, _guarded(publishers, options), _print)
        guarded = {topic: GuardedPublisher(publisher, live) for topic, publisher in publishers.items()}
        player = Player(
            bag,
            guarded,
            [topic for topic in topics if is_latched(topic)],
            span,
            rate=options.rate,
            clock=_clock(node, options),
            on_gap=_print_gap,
        )
        handle_stop_signals(player.stop)
        if not player.wait(options.delay):
            return 0
        played = [topic for topic, publisher in guarded.items() if live.allows(publisher.topic_name) and topic.count]
        if not played:
            print(f"drone-bridge play: '{options.bag}' has nothing else to play.", file=sys.stderr)
            return 1
        if options.clock and (facts := clock_conflict(node)):
            _print(f"{Obstacle.CLOCK.reason(**facts)}: time will jump back and forth.")
        topics_text = "1 topic" if len(played) == 1 else f"{len(played)} topics"
        _print(f"Playing {topics_text}, {span.seconds:.1f} s, at {options.rate:g} times the recorded speed.")
        player.play()
        for topic in played:
            if live.allows(guarded[topic].topic_name):
                wait_for_delivery(publishers[topic])
        return 0
    finally:
        shut_down_ros()


def _chosen(bag: "BagReader", options: argparse.Namespace) -> "list[BagTopic]":
    """Return the topics to play, and report requested ones that are not in the bag."""
    names = {topic.name for topic in bag.topics}
    wanted = set(options.topics or names)
    for name in sorted((wanted | {old for old, _ in options.remap}) - names):
        _print(f"'{name}' is not in the bag, which has {', '.join(sorted(names))}.")
    if options.clock and CLOCK_TOPIC in wanted:
        _print(f"'{CLOCK_TOPIC}' is skipped: --clock publishes the time of recording on it.")
        wanted.discard(CLOCK_TOPIC)
    return [topic for topic in bag.topics if topic.name in wanted]


def _guarded(publishers: "dict[BagTopic, Any]", options: argparse.Namespace) -> list[str]:
    """Return the published names of the topics that were not requested by name."""
    named = {*(options.topics or ()), *(old for old, _ in options.remap)}
    return [publisher.topic_name for topic, publisher in publishers.items() if topic.name not in named]


def _span(bag: "BagReader", options: argparse.Namespace) -> "Span":
    from drone_bridge.tools.bags.bag import BagReadError
    from drone_bridge.tools.play.player import Span

    start_ns = bag.start_ns + round(options.start * 1e9)
    if options.start and start_ns >= bag.end_ns:
        seconds = (bag.end_ns - bag.start_ns) / 1e9
        raise BagReadError(
            f"'{bag.path}' lasts {seconds:.1f} s, so there is nothing to play from {options.start:g} s on."
        )
    stop_ns = bag.end_ns if math.isinf(options.duration) else min(start_ns + round(options.duration * 1e9), bag.end_ns)
    return Span(start_ns, stop_ns)


def _clock(node: "Node", options: argparse.Namespace) -> "tuple[Any, float] | None":
    from rosgraph_msgs.msg import Clock

    return (node.create_publisher(Clock, CLOCK_TOPIC, 1), options.clock) if options.clock else None


def _print_gap(position_s: float, gap_s: float) -> None:
    _print(f"Left out: {gap_s:.1f} s without a message, from {position_s:.1f} s on.")


def _print(sentence: str) -> None:
    print(sentence, flush=True)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="drone-bridge play", description=__doc__, formatter_class=AS_WRITTEN)
    parser.add_argument("bag", type=Path, help="a folder with metadata.yaml, or an .mcap file")
    parser.add_argument("--rate", type=positive, default=1.0, help="seconds of the bag per second (1)")
    parser.add_argument("--start", type=not_negative, default=0.0, metavar="S", help="begin so many seconds in")
    parser.add_argument("--duration", type=not_negative, default=math.inf, metavar="S", help="end so much later")
    parser.add_argument("--topics", nargs="+", type=_full_name, metavar="NAME", help="play these only")
    parser.add_argument("--remap", nargs="+", type=_remapping, default=[], metavar="OLD:=NEW", help="rename topics")
    parser.add_argument(
        "--clock",
        nargs="?",
        type=positive,
        const=CLOCK_HZ,
        metavar="HZ",
        help=f"publish the time of recording on {CLOCK_TOPIC} so often ({CLOCK_HZ:g}), for nodes with use_sim_time",
    )
    parser.add_argument(
        "--delay", type=not_negative, default=1.0, metavar="S", help="wait for subscribers to be discovered (1)"
    )
    return parser.parse_args(argv)


def _remapping(text: str) -> tuple[str, str]:
    old, separator, new = text.partition(":=")
    if not (separator and old and new):
        raise argparse.ArgumentTypeError(f"must be OLD:=NEW, not '{text}'")
    return _full_name(old), new


def _full_name(text: str) -> str:
    return text if text.startswith("/") else f"/{text}"
