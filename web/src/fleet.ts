// SPDX-License-Identifier: Apache-2.0
// Subject of the page: one vehicle with all topics of its namespace.

import type { Helm, Vehicle } from "./helm";
import type { Stream } from "./stream";

/** A vehicle, or the whole graph if nothing can be steered. */
export interface Subject {
  /** Its namespace with slashes at both ends. */
  prefix: string;
  name: string;
  vehicle?: Vehicle;
}

/** Sends "change" when subjects appear or disappear, or another one is chosen, and "chosen" when a person chooses one, perhaps the same. */
export class Fleet extends EventTarget {
  subjects: Subject[] = [];
  #chosen = "";
  /** The chosen one, as far as it is known after it has left. */
  #kept?: Subject;

  constructor(private stream: Stream, private helm: Helm) {
    super();
    stream.addEventListener("graph", () => this.#look());
    helm.addEventListener("change", () => this.#look());
  }

  /** The chosen one, also after it has left: another vehicle gets STOP, takeoff or a goal only after a person's choice. */
  get subject(): Subject {
    return this.subjects.find((subject) => subject.prefix === this.#chosen) ?? this.subjects[0]
      ?? { prefix: "/", name: "" };
  }

  choose(prefix: string): void {
    this.#chosen = prefix;
    this.#look();
    this.dispatchEvent(new Event("chosen"));
  }

  /** Whether a topic or service is in a namespace, and not in that of another vehicle within it. */
  isIn(prefix: string, name: string): boolean {
    const isWithin = (other: string): boolean => other.length > prefix.length && other.startsWith(prefix) && name.startsWith(other);
    return name.startsWith(prefix) && !this.subjects.some((other) => isWithin(other.prefix));
  }

  /** Topics of the subject, or of another one, by their names below its namespace. */
  topics(prefix = this.subject.prefix): Map<string, string> {
    const topics = new Map<string, string>();
    for (const [topic, channel] of this.stream.topics) {
      if (this.isIn(prefix, topic)) topics.set(topic.slice(prefix.length), channel.schemaName);
    }
    return topics;
  }

  #look(): void {
    const subjects = this.helm.vehicles.map((vehicle): Subject => {
      const prefix = vehicle.topic.slice(0, vehicle.topic.lastIndexOf("/") + 1);
      return { prefix, name: vehicle.name, vehicle };
    });
    // Without vehicles that accept commands (such as in a bag), namespaces with cameras or odometry are used.
    if (subjects.length === 0) {
      const prefixes = new Set<string>();
      const bridges = new Map<string, string>();
      for (const [topic, { schemaName }] of this.stream.topics) {
        // A bridge has a topic of its own, which makes its namespace a vehicle. Others with odometry are not.
        const [, prefix = "", bridge = ""] = /^(.*\/)(\w+)_(?:bridge|server)\/\w+$/.exec(topic) ?? [];
        if (bridge && bridge !== "web") bridges.set(prefix, bridge);
        if (schemaName === "nav_msgs/msg/Odometry") prefixes.add(topic.slice(0, topic.lastIndexOf("/") + 1));
      }
      for (const prefix of bridges.size > 0 ? bridges.keys() : prefixes) {
        subjects.push({ prefix, name: prefix.replaceAll("/", " ").trim() || (bridges.get(prefix) ?? "vehicle") });
      }
    } else this.#keepChosen(subjects);
    this.subjects = subjects;
    this.dispatchEvent(new Event("change"));
  }

  /** Keep the chosen vehicle among others while it is gone. The first one that is shown counts as chosen. */
  #keepChosen(subjects: Subject[]): void {
    if (!this.#chosen) this.#chosen = subjects[0]!.prefix;
    const present = subjects.find(({ prefix }) => prefix === this.#chosen);
    if (present) this.#kept = { prefix: present.prefix, name: present.name };
    else if (this.#kept?.prefix === this.#chosen) {
      subjects.push(this.#kept);
      subjects.sort((a, b) => (a.prefix < b.prefix ? -1 : 1));
    }
  }
}
