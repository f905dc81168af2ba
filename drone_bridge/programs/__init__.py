# SPDX-License-Identifier: Apache-2.0
"""What plain programs without ROS share, emulators and operators: options, signals, output, exit status."""
