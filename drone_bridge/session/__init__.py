# SPDX-License-Identifier: Apache-2.0
"""What is sent when: sessions and what they share, pure, with the time handed in."""
