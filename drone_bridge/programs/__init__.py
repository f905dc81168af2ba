# SPDX-License-Identifier: Apache-2.0
"""Common parts of emulators and operators: options, signals, output, exit status. No ROS."""
