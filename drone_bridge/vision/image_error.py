# SPDX-License-Identifier: Apache-2.0
"""ImageError: the reason why an image can't be used."""


class ImageError(ValueError):
    """Image that can't be decoded, encoded or sent.

    The text is the predicate of a sentence, such as "is truncated". The caller that shows it names the image first.
    """
