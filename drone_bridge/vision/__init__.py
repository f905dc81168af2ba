# SPDX-License-Identifier: Apache-2.0
"""Image processing: detection, decoding, and rendering for emulators. No ROS."""
