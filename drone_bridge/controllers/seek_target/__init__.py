# SPDX-License-Identifier: Apache-2.0
"""Behaviour seek_target: flies to a sphere in the images of a stereo camera."""
