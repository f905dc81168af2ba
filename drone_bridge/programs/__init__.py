# SPDX-License-Identifier: Apache-2.0
"""What emulators and operators, plain programs without ROS, share: options, signals, output, exit status."""
