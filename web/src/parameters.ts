// SPDX-License-Identifier: Apache-2.0
// Parameters of a node with their descriptors: meaning, range, whether they can be changed.

import { h, setText } from "./dom";
import type { Message, Stream } from "./stream";

const LIST = "/list_parameters";
const NOT_SET = 0, BOOL = 1, INTEGER = 2, DOUBLE = 3, STRING = 4, DOUBLES = 8;
/** Field of a ParameterValue for each type, from NOT_SET on. */
const FIELDS = [
  "", "bool_value", "integer_value", "double_value", "string_value", "byte_array_value", "bool_array_value",
  "integer_array_value", "double_array_value", "string_array_value",
];
/** Prefix of parameters that a node has for each of its topics. */
const FOLDED = "qos_overrides";
const EMPTY_VALUE: Message = {
  type: NOT_SET, bool_value: false, integer_value: 0n, double_value: 0, string_value: "", byte_array_value: [],
  bool_array_value: [], integer_array_value: [], double_array_value: [], string_array_value: [],
};

export class Parameters {
  readonly element: HTMLElement;
  #node = h("select", { "aria-label": "Node", onchange: () => void this.#load() });
  #list = h("div.parameters");
  #filter = h("input", { type: "search", placeholder: "Filter parameters", "aria-label": "Filter parameters", oninput: () => this.#hide() });
  #nodes = "";

  constructor(private stream: Stream) {
    const reload = h("button.small", { onclick: () => void this.#load() }, "Reload");
    const save = h("button.small", { title: "All parameters of all nodes, as a file for params_file:=", onclick: () => void this.#save(save) }, "YAML of all");
    this.element = h("div.tab-body", {}, h("div.tab-tools", {}, this.#node, reload, save), h("div.tab-tools", {}, this.#filter), h("div.scroll", { tabindex: 0 }, this.#list));
    stream.addEventListener("graph", () => this.#arrange());
    new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting) && !this.#list.hasChildNodes()) void this.#load();
    }).observe(this.element);
  }

  #arrange(): void {
    const nodes = [...this.stream.services.keys()].filter((name) => name.endsWith(LIST)).map((name) => name.slice(0, -LIST.length));
    nodes.sort((a, b) => Number(!a.endsWith("_bridge")) - Number(!b.endsWith("_bridge")) || a.localeCompare(b));
    if (nodes.join() === this.#nodes) return;
    this.#nodes = nodes.join();
    const chosen = this.#node.value;
    this.#node.replaceChildren(...nodes.map((name) => h("option", { value: name }, name)));
    if (nodes.includes(chosen)) this.#node.value = chosen;
    else this.#list.replaceChildren();
  }

  async #load(): Promise<void> {
    const node = this.#node.value;
    if (!node) return;
    this.#list.replaceChildren(h("p.hint", {}, "Loading …"));
    try {
      const parameters = await this.#read(node);
      if (this.#node.value !== node) return;
      const rows = parameters.map(([name, descriptor, value]): [string, HTMLElement] => [name, this.#row(node, name, descriptor, value)]);
      const folded = rows.filter(([name]) => name.startsWith(FOLDED)).map(([, row]) => row);
      this.#list.replaceChildren(...rows.filter(([name]) => !name.startsWith(FOLDED)).map(([, row]) => row));
      if (folded.length > 0) this.#list.append(h("details.folded", {}, h("summary", {}, `${FOLDED} (${folded.length})`), ...folded));
      this.#hide();
    } catch (error) {
      this.#list.replaceChildren(h("p.hint.error", {}, (error as Error).message));
    }
  }

  /** Hide parameters without the filter text in name or description, and the folded group if it is empty. */
  #hide(): void {
    const filter = this.#filter.value.trim().toLowerCase();
    for (const row of this.#list.querySelectorAll<HTMLElement>(".parameter")) row.hidden = !row.textContent!.toLowerCase().includes(filter);
    const folded = this.#list.querySelector<HTMLDetailsElement>(".folded");
    if (!folded) return;
    folded.hidden = ![...folded.querySelectorAll<HTMLElement>(".parameter")].some((row) => !row.hidden);
    folded.open = filter !== "" && !folded.hidden;
  }

  /** Name, descriptor and value of each parameter of a node. */
  async #read(node: string): Promise<[string, Message, Message][]> {
    const { result } = await this.stream.call(`${node}${LIST}`, { prefixes: [], depth: 0n });
    const names: string[] = [...result.names].sort();
    const { descriptors } = await this.stream.call(`${node}/describe_parameters`, { names });
    const { values } = await this.stream.call(`${node}/get_parameters`, { names });
    return names.map((name, index) => [name, descriptors[index], values[index]]);
  }

  /** Offer a file with the parameters of all nodes, in ROS format. */
  async #save(button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    const parts: string[] = [];
    for (const { value: node } of [...this.#node.options]) {
      try {
        const settable = (await this.#read(node)).filter(([, { read_only }, { type }]) => !read_only && type !== NOT_SET);
        parts.push([`${node}:`, "  ros__parameters:", ...settable.map(([name, , value]) => `    ${name}: ${yaml(value)}`)].join("\n"));
      } catch (error) {
        parts.push(`# ${node}: ${(error as Error).message}`);
      }
    }
    const link = h("a", { href: URL.createObjectURL(new Blob([parts.join("\n"), "\n"], { type: "text/yaml" })), download: "parameters.yaml" });
    this.element.dataset["yaml"] = parts.join("\n");
    link.click();
    URL.revokeObjectURL(link.href);
    button.disabled = false;
  }

  #row(node: string, name: string, descriptor: Message, value: Message): HTMLElement {
    const note = h("span.topic-type.note", { role: "status" });
    const changed = h("span.changed", { hidden: true });
    const standard = defaultOf(descriptor);
    const show = (now: Message): void => {
      changed.hidden = standard === undefined || descriptor.read_only || yaml(now) === standard;
      setText(changed, `changed, default ${standard}`);
    };
    const say = (text: string, isError: boolean): void => {
      note.classList.toggle("error", isError);
      setText(note, text);
    };
    const set = async (wanted: Message): Promise<void> => {
      say("", false);
      try {
        const parameter = { ...EMPTY_VALUE, ...wanted };
        const { results } = await this.stream.call(`${node}/set_parameters`, { parameters: [{ name, value: parameter }] });
        if (!results[0]?.successful) return say(results[0]?.reason || "Refused.", true);
        show(parameter);
        say(`${yaml(parameter)} is valid until the node ends. To keep it, save "YAML of all".`, false);
      } catch (error) {
        say((error as Error).message, true);
      }
    };
    const range = rangeOf(descriptor);
    const input = inputFor(value, descriptor, range, set);
    input.ariaLabel = name;
    show(value);
    return h("div.parameter", { "data-parameter": name },
      h("div.parameter-head", {}, h("span.name", {}, name), input),
      h("div.topic-type", {}, [descriptor.description, range ? `${range[0]} to ${range[1]}.` : "", descriptor.additional_constraints,
        descriptor.read_only ? "Read only." : ""].filter(Boolean).join(" ")),
      changed, note);
  }
}

/** Value in YAML and JSON syntax. */
function yaml(value: Message): string {
  const plainValue: unknown = FIELDS[value.type] ? value[FIELDS[value.type]!] : "";
  if (value.type === DOUBLE) return real(plainValue as number);
  if (value.type === DOUBLES) return `[${Array.from(plainValue as ArrayLike<number>, real).join(", ")}]`;
  return typeof plainValue === "object" ? `[${Array.from(plainValue as ArrayLike<unknown>, (each) => JSON.stringify(each, plain)).join(", ")}]` : JSON.stringify(plainValue, plain);
}

function real(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : Number.isNaN(value) ? ".nan" : String(value);
}

/** Default value, from the description of our nodes; undefined for others. */
function defaultOf(descriptor: Message): string | undefined {
  return /(?:^|\. )Default: (.*)\.$/s.exec(descriptor.additional_constraints ?? "")?.[1];
}

function rangeOf(descriptor: Message): [number, number, number] | undefined {
  const range = descriptor.floating_point_range[0] ?? descriptor.integer_range[0];
  return range ? [Number(range.from_value), Number(range.to_value), Number(range.step)] : undefined;
}

function inputFor(
  value: Message, descriptor: Message, range: [number, number, number] | undefined, set: (value: Message) => Promise<void>,
): HTMLElement {
  const field = FIELDS[value.type] ?? "";
  const disabled = descriptor.read_only === true;
  const current = field ? value[field] : "";
  if (value.type === BOOL) {
    const input = h("input", { type: "checkbox", checked: current === true, disabled });
    input.addEventListener("change", () => void set({ type: BOOL, bool_value: input.checked }));
    return input;
  }
  const choices = /^One of (.*?)\.( Default|$)/.exec(descriptor.additional_constraints ?? "")?.[1]?.split(", ");
  if (choices && value.type === STRING) {
    const select = h("select", { disabled }, ...choices.map((choice) => h("option", { value: choice }, choice)));
    select.value = String(current);
    select.addEventListener("change", () => void set({ type: STRING, string_value: select.value }));
    return select;
  }
  if (value.type === INTEGER || value.type === DOUBLE) {
    const input = h("input", {
      type: "number", value: String(current), disabled, min: range?.[0], max: range?.[1],
      step: value.type === INTEGER ? 1 : "any",
    });
    input.addEventListener("change", () => {
      if (!input.reportValidity() || input.value === "") return;
      void set(value.type === INTEGER
        ? { type: INTEGER, integer_value: BigInt(input.value) }
        : { type: DOUBLE, double_value: Number(input.value) });
    });
    return input;
  }
  const isText = value.type === STRING || value.type === NOT_SET;
  const input = h("input", { type: "text", value: isText ? String(current) : JSON.stringify([...current], plain), disabled });
  input.addEventListener("change", () => {
    if (isText) return void set({ type: STRING, string_value: input.value });
    try {
      const list: unknown[] = JSON.parse(input.value);
      const isWhole = field === "integer_array_value";
      input.setCustomValidity("");
      void set({ type: value.type, [field]: isWhole ? list.map((each) => BigInt(each as number)) : list });
    } catch {
      input.setCustomValidity("A list is expected, such as [1, 2].");
      input.reportValidity();
    }
  });
  return input;
}

function plain(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
