// SPDX-License-Identifier: Apache-2.0
// Form for a message of any type, created from its definition.

import { h } from "./dom";
import type { Definitions, Message } from "./stream";

type Definition = Definitions[number];
type Field = Definition["definitions"][number];

export interface Form {
  element: HTMLElement;
  /** Value of the form; throws an Error for an invalid input. */
  read: () => Message;
}

const INTEGERS: Record<string, [bigint, bigint]> = Object.fromEntries(
  [8, 16, 32, 64].flatMap((bits) => [
    [`int${bits}`, [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n]],
    [`uint${bits}`, [0n, 2n ** BigInt(bits) - 1n]],
  ]),
);

/** Form for the first of the definitions, which may contain the others. */
export function formFor(definitions: Definitions): Form {
  return formOf(definitions[0]!, definitions);
}

function formOf(definition: Definition, all: Definitions): Form {
  const fields = definition.definitions.filter((field) => !field.isConstant && field.name !== "structure_needs_at_least_one_member");
  const parts = fields.map((field) => ({ field, form: inputFor(field, all) }));
  const element = h("div.fields", {}, ...parts.map(({ field, form }) =>
    field.isComplex && !field.isArray
      ? h("fieldset", {}, h("legend", {}, field.name), form.element)
      : h("label.field", {}, h("span", {}, field.name), form.element)));
  return { element, read: () => Object.fromEntries(parts.map(({ field, form }) => [field.name, form.read()])) };
}

function inputFor(field: Field, all: Definitions): Form {
  if (field.isArray) return listFor(field);
  if (field.isComplex) {
    const definition = all.find((each) => each.name === field.type || each.name === field.type.replace("/", "/msg/"));
    if (!definition) return { element: h("span.hint", {}, `${field.type} is unknown`), read: () => ({}) };
    return formOf(definition, all);
  }
  if (field.type === "bool") {
    const input = h("input", { type: "checkbox", checked: field.defaultValue === true });
    return { element: input, read: () => input.checked };
  }
  if (field.type === "time" || field.type === "duration") return momentFor(field);
  const isText = field.type === "string" || field.type === "wstring";
  const standard = field.defaultValue ?? (isText ? "" : 0);
  const input = h("input", { type: "text", value: String(standard), inputmode: isText ? "text" : "decimal", size: isText ? 16 : 8 });
  return { element: input, read: () => (isText ? input.value : numberOf(input.value, field.type, field.name)) };
}

/** A time is the moment when the form is read, unless it is given in seconds. A duration is in seconds. */
function momentFor({ type, name }: Field): Form {
  const input = h("input", { type: "text", value: type === "time" ? "now" : "0", size: 16 });
  return {
    element: input,
    read: () => {
      const seconds = input.value.trim() === "now" ? Date.now() / 1000 : Number(numberOf(input.value, "float64", name));
      return { sec: Math.floor(seconds), nanosec: Math.floor((seconds % 1) * 1e9) };
    },
  };
}

/** Arrays are entered as JSON, for all types. */
function listFor(field: Field): Form {
  const length = field.arrayLength ?? 0;
  const standard = JSON.stringify(field.defaultValue ?? Array<number>(length).fill(0));
  const input = h("input", { type: "text", value: standard, title: `${field.type}[], as JSON` });
  return {
    element: input,
    read: () => {
      let list: unknown;
      try {
        list = JSON.parse(input.value || "[]");
      } catch {
        list = undefined;
      }
      if (!Array.isArray(list)) throw new Error(`${field.name} is not a list, such as [1, 2].`);
      return field.type.endsWith("int64") ? list.map((each) => BigInt(each)) : list;
    },
  };
}

export function numberOf(text: string, type: string, name: string): number | bigint {
  const range = INTEGERS[type === "byte" || type === "char" ? "uint8" : type];
  if (!range) {
    const value = Number(text);
    if (text.trim() === "" || Number.isNaN(value)) throw new Error(`${name} is "${text}", not a number.`);
    return value;
  }
  if (!/^\s*-?\d+\s*$/.test(text)) throw new Error(`${name} is "${text}", not a whole number.`);
  const value = BigInt(text.trim());
  if (value < range[0] || value > range[1]) throw new Error(`${name} is ${value}, not from ${range[0]} to ${range[1]}.`);
  return type.endsWith("int64") ? value : Number(value);
}
