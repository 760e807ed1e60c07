import type { Draft } from "./commands.ts";

export interface Template extends Draft {
  readonly name: string;
}

/** Templates that everybody gets. */
export const templates: readonly Template[] = [
  { name: "A greeting", topic: "hello/world", content: "Hello, chain!", isJson: false },
  {
    name: "An order",
    topic: "orders/eu",
    content: '{\n  "order": 1001,\n  "customer": "c-17",\n  "lines": [{ "sku": "a-1", "count": 2 }]\n}',
    isJson: true,
  },
  {
    name: "A measurement",
    topic: "sensors/7/temperature",
    content: '{ "celsius": 21.5, "at": "2026-01-01T12:00:00Z" }',
    isJson: true,
  },
];

/** The fields of the publish form as a URL fragment, which a browser sends to no server. A bookmark of the URL serves as a template. */
export function toFragment({ topic, content, isJson }: Draft): string {
  return `#${new URLSearchParams({ topic, content, ...(isJson ? { json: "true" } : {}) }).toString()}`;
}

/** The fields in a URL fragment, or undefined. They only fill the form: a person still has to press the button. */
export function readFragment(fragment: string): Draft | undefined {
  const values = new URLSearchParams(fragment.slice(1));
  const topic = values.get("topic");
  return topic === null
    ? undefined
    : { topic, content: values.get("content") ?? "", isJson: values.get("json") === "true" };
}
