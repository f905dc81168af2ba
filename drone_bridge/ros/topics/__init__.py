# SPDX-License-Identifier: Apache-2.0
"""Tables of topics, and the messages in them: standard rows, images, odometry, frames."""
