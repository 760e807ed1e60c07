import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeliveryWindow, type InFlight } from "./delivery-window.ts";
import { fromStored } from "./position.ts";
import type { TopicName } from "./topic-name.ts";

const topic = "t" as TopicName; // any name does

type Step =
  | { readonly kind: "give" }
  | { readonly kind: "receive" | "acknowledge" | "reject" | "rollBack"; readonly at: number };

const step = fc.oneof(
  fc.record({ kind: fc.constant("give" as const) }),
  fc.record({ kind: fc.constantFrom("receive" as const, "acknowledge" as const, "reject" as const), at: fc.nat(20) }),
  fc.record({ kind: fc.constant("rollBack" as const), at: fc.nat(60) }),
);

/** A window as a plain list. */
class Model {
  entries: InFlight[] = [];

  apply(step: Exclude<Step, { kind: "give" }>): void {
    const index = this.entries.findIndex(({ ticket }) => ticket === step.at);
    if (step.kind === "rollBack") this.entries = this.entries.filter(({ position }) => position <= step.at);
    else if (index < 0) return;
    else if (step.kind === "acknowledge") this.entries.splice(index, 1);
    else if (step.kind === "reject")
      this.entries = this.entries.map((one, at) =>
        at === index ? { ...one, rejections: (one.rejections ?? 0) + 1 } : one,
      );
    else this.entries = this.entries.map((entry, at) => (at === index ? { ...entry, state: "received" } : entry));
  }
}

describe("the delivery window", () => {
  it("holds the same entries in the same order as a plain list, after any steps", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps: readonly Step[]) => {
        const window = new DeliveryWindow();
        const model = new Model();
        for (const [index, one] of steps.entries()) {
          if (one.kind === "give") {
            const position = fromStored(index + 1);
            const ticket = window.give({ position, topic, qos: 1 });
            model.entries.push({ ticket, position, topic, qos: 1, state: "given" });
          } else {
            model.apply(one);
            if (one.kind === "acknowledge") window.acknowledge(one.at);
            else if (one.kind === "reject") window.reject(one.at);
            else if (one.kind === "receive") window.receive(one.at);
            else window.rollBack(fromStored(one.at));
          }
          expect([...window.entries]).toEqual(model.entries);
          expect(window.lowest).toBe(model.entries.find(({ state }) => state === "given")?.position);
        }
        const tickets = model.entries.map(({ ticket }) => ticket);
        expect(new Set(tickets).size).toBe(tickets.length);
      }),
    );
  });

  it("numbers events from 1 to 65,535 and then from 1 again, skipping tickets in flight", () => {
    const window = new DeliveryWindow();
    const first = window.give({ position: fromStored(1), topic, qos: 1 });
    for (let index = 2; index <= 65_535; index += 1) {
      const ticket = window.give({ position: fromStored(index), topic, qos: 1 });
      if (ticket > 10) window.acknowledge(ticket);
    }
    expect(first).toBe(1);
    expect(window.give({ position: fromStored(70_000), topic, qos: 1 })).toBe(11);
  });

  it("refuses an event when every ticket is in flight", () => {
    const window = new DeliveryWindow();
    for (let index = 1; index <= 65_535; index += 1) window.give({ position: fromStored(index), topic, qos: 1 });
    expect(() => window.give({ position: fromStored(70_000), topic, qos: 1 })).toThrow(RangeError);
  });
});
