# SPDX-License-Identifier: Apache-2.0
"""The robot_server node."""
