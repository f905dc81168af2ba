# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic`, `service` and `param`: the verbs of `ros2` that our docs use, for systems without `ros2`.

Arguments are those of `ros2`. If that is installed, it is run instead, and its command line is printed.
"""
