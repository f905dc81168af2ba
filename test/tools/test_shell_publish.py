# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic pub` without DDS: how it ends."""

from types import SimpleNamespace

from drone_bridge.tools.shell import topic


class Publisher:
    """A publisher whose subscriber hangs, so that a wait for its acknowledgement has no end of its own."""

    topic_name, published, timeouts = "/told", (), ()

    def get_subscription_count(self):
        return 1

    def publish(self, message):
        self.published += (message.data,)

    def wait_for_all_acked(self, timeout=None):
        self.timeouts += (timeout,)


def test_a_hanging_subscriber_does_not_block_the_publisher(monkeypatch):
    publisher = Publisher()
    node = SimpleNamespace(
        create_publisher=lambda kind, name, depth: publisher,
        get_subscriptions_info_by_topic=lambda topic: [],
        resolve_topic_name=lambda name: f"/{name}",
    )
    monkeypatch.setattr(topic, "spin_until", lambda node, condition, timeout_s: condition())
    words = SimpleNamespace(
        rate=1.0, once=True, times=0, topic="told", type="std_msgs/msg/String", message="{data: once}"
    )
    assert topic._publish(node, words) == 0
    assert publisher.published == ("once",)
    (timeout,) = publisher.timeouts
    assert timeout is not None
