import fc from "fast-check";
import { expect, it } from "vitest";
import { EventWindow, type WindowEntry } from "./event-window.ts";
import { fromStored } from "./position.ts";

const step = fc.oneof(
  fc.constant({ kind: "add" as const }),
  fc.record({ kind: fc.constantFrom("accepted" as const, "passed" as const, "skipped" as const), at: fc.nat(40) }),
);

it("takePrefix returns each event once, as soon as that event and all older ones have ended", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const window = new EventWindow();
      const all: WindowEntry[] = [];
      let [upTo, accepted] = [0, 0];
      const skipped: WindowEntry[] = [];
      for (const one of steps) {
        if (one.kind === "add") {
          const entry: WindowEntry = { position: fromStored(all.length + 1), end: undefined };
          all.push(entry);
          window.add(entry);
        } else {
          const entry = all[one.at];
          if (entry !== undefined && entry.end === undefined) entry.end = one.kind;
        }
        const prefix = window.takePrefix();
        upTo = prefix?.upTo ?? upTo;
        accepted += prefix?.accepted ?? 0;
        skipped.push(...(prefix?.skipped ?? []));
        const open = all.findIndex(({ end }) => end === undefined);
        const ended = all.slice(0, open < 0 ? all.length : open);
        expect([upTo, accepted]).toEqual([ended.length, ended.filter(({ end }) => end === "accepted").length]);
        expect(skipped).toEqual(ended.filter(({ end }) => end === "skipped"));
        expect(window.oldest).toBe(all[ended.length]);
        expect(window.size).toBe(all.length - ended.length);
      }
    }),
  );
});
