# SPDX-License-Identifier: Apache-2.0
"""What is said when: sessions and what they share, pure, with the time handed in."""
