# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic`, `service` and `param`: the verbs of `ros2` that the pages use, where there is no `ros2`.

Words and options are those of `ros2`. Where that is installed, it is run instead, and the line says so.
"""
