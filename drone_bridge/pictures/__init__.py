# SPDX-License-Identifier: Apache-2.0
"""Pictures of a vehicle's camera between packets of video and image topics.

Decoding and encoding take about ten milliseconds of Python each. They run in a child process, `worker`, which does not
import ROS or other parts of a node: a thread of the node would hold Python's global lock, and delay commands.
`codec_process` starts the child and shares memory with it. `camera` publishes for a bridge, which hands in the source
of packets.
"""
