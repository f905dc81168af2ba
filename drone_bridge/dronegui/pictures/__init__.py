# SPDX-License-Identifier: Apache-2.0
"""Pictures of an AR.Drone between the video port and image topics.

Decoding and encoding take ten milliseconds of Python each, so they are done in a child process, `worker`, which imports
neither ROS nor anything else of a node: a thread of the node would hold Python's lock meanwhile, and commands come
first. `codec_process` starts the child and shares memory with it, `camera` publishes for the bridge.
"""
