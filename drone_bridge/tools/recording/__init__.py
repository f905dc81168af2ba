# SPDX-License-Identifier: Apache-2.0
"""What the recorder is made of: the bag on disk, the thread that writes it, the node."""
