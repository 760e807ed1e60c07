import { expect, it } from "vitest";
import type { Event } from "../../domain/event.ts";
import { Cancellation } from "../../lib/cancellation.ts";
import type { EventOrigin, OriginSource } from "../broker.ts";
import { loadOrigins } from "./load-origins.ts";

const [known, unknown] = ["known", "unknown"].map((topic) => ({ topic }) as Event); // The load looks at nothing else.
const events = [known, unknown] as readonly Event[];

function originOf({ topic }: Pick<Event, "topic">): EventOrigin {
  return { source: topic, time: undefined };
}

/** Has the origin of one event, and loads the other with `load`. */
function createSource(load: OriginSource["load"]): OriginSource {
  return { find: (event) => (event === known ? originOf(event) : undefined), load };
}

const onFailed = async (): Promise<void> => {};

it("calls onWait even if only the last event's origin must be loaded, and keeps no listener", async () => {
  const signal = new Cancellation();
  const listeners = new Set<unknown>();
  const counted = {
    get aborted() {
      return signal.aborted;
    },
    addEventListener: (_: "abort", listener: () => void) => void listeners.add(listener),
    removeEventListener: (_: "abort", listener: () => void) => void listeners.delete(listener),
  };
  const steps: string[] = [];
  const source = createSource(async (event) => {
    steps.push("load");
    return originOf(event);
  });
  const found = await loadOrigins(events, source, { signal: counted, onFailed, onWait: () => void steps.push("wait") });
  expect(found).toEqual(events.map(originOf));
  expect(steps).toEqual(["wait", "load"]);
  expect(listeners.size).toBe(0);
});

it("ends a load that is in progress when the signal aborts", async () => {
  const signal = new Cancellation();
  const source = createSource(
    (_, loading) => new Promise((_resolve, reject) => loading.addEventListener("abort", () => reject(loading.reason))),
  );
  const loading = loadOrigins(events, source, { signal, onFailed, onWait: () => {} });
  signal.abort();
  expect(await loading).toBeUndefined();
});
