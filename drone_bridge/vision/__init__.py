# SPDX-License-Identifier: Apache-2.0
"""What images show, without ROS: shared by controllers and servers."""
