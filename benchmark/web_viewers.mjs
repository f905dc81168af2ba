// SPDX-License-Identifier: Apache-2.0
// Viewers of web_bridge in JavaScript: node web_viewers.mjs ADDRESS COUNT. They take images, odometry and transforms.
// For each line of input, prints what came since the last one: messages, images, and ages in ms, 50th and 99th centile.
// With "stop SECONDS" it takes nothing for so long.
import { createInterface } from "node:readline";

const [address, count] = process.argv.slice(2);
const WANTED = new Set(["/camera/image_raw", "/odom", "/tf"]);
// The stamp is the first thing in these messages, after four bytes of encapsulation; before it, /tf has a length.
const STAMP_AT = { "/camera/image_raw": 4, "/odom": 4, "/tf": 8 };
const RETRY_MS = 100;
let ages = [];
let images = 0;

function look() {
  const socket = new WebSocket(`ws://${address}`, ["foxglove.sdk.v1"]);
  const topics = new Map();
  socket.onerror = () => setTimeout(look, RETRY_MS); // the server may not listen yet
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      for (const { id, topic } of message.channels ?? []) {
        if (!WANTED.has(topic)) continue;
        topics.set(id, topic);
        socket.send(JSON.stringify({ op: "subscribe", subscriptions: [{ id, channelId: id }] }));
      }
      return;
    }
    const view = new DataView(data);
    if (view.getUint8(0) !== 1) return;
    const topic = topics.get(view.getUint32(1, true));
    const at = 13 + STAMP_AT[topic];
    const sentMs = view.getInt32(at, true) * 1e3 + view.getUint32(at + 4, true) / 1e6;
    ages.push(performance.timeOrigin + performance.now() - sentMs);
    if (topic === "/camera/image_raw") images += 1;
  };
}

process.on("SIGINT", () => process.exit(0));
for (let viewer = 0; viewer < Number(count); viewer++) look();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  if (line.startsWith("stop")) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(line.slice(5)) * 1000);
    continue;
  }
  ages.sort((a, b) => a - b);
  const centile = (share) => ages[Math.min(ages.length - 1, Math.floor(share * ages.length))] ?? null;
  console.log(JSON.stringify({ messages: ages.length, images, p50: centile(0.5), p99: centile(0.99) }));
  ages = [];
  images = 0;
}
process.exit(0);
