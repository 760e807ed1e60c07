import { expect, it } from "vitest";
import { Stele, type Tail } from "../index.ts";

const eventIds = ["2cf24dba-1-1", "2cf24dba-2-2", "2cf24dba-3-3"];
const frames = eventIds.map((eventId) => {
  const event = { topic: "t", eventId, content: "", extensions: {} };
  return `id: ${eventId}\ndata: ${JSON.stringify(event)}\n\n`;
});

/**
 * A tail whose connections stay open. Each gives a place and three events: at once, or if `isHeld`, when the test calls `send`. `connected` resolves with the
 * first connection, and `connections` counts them.
 */
function tailOfThree({ isHeld }: { readonly isHeld: boolean }) {
  const controllers: ReadableStreamDefaultController<Uint8Array>[] = [];
  let connections = 0;
  const send = (): void => {
    for (const controller of controllers.splice(0)) {
      for (const text of ["id: @0\n\n", frames.join("")]) controller.enqueue(new TextEncoder().encode(text));
    }
  };
  const fetch: typeof globalThis.fetch = async () => {
    connections += 1;
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void controllers.push(controller) });
    if (!isHeld) send();
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  let onConnect: (() => void) | undefined;
  const connected = new Promise<void>((resolve) => (onConnect = resolve));
  const tail = new Stele({ url: "http://broker.example", fetch }).subscribe("t", { onConnect });
  return { tail, send, connected, connections: () => connections };
}

async function readThree(tail: Tail): Promise<readonly string[]> {
  const read: string[] = [];
  for await (const { eventId } of tail) {
    read.push(eventId);
    if (read.length === eventIds.length) break;
  }
  return read;
}

it("two concurrent calls of opened() make one connection", async () => {
  const { tail, connections } = tailOfThree({ isHeld: false });
  await Promise.all([tail.opened(), tail.opened()]);
  expect(await readThree(tail)).toEqual(eventIds);
  expect(connections()).toBe(1);
});

it.each([
  ["before", (tail: Tail) => [tail.opened(), readThree(tail)]],
  ["after", (tail: Tail) => [readThree(tail), tail.opened()]],
])("a call of opened() just %s the loop begins shares the loop's connection", async (_when, begin) => {
  const { tail, connections } = tailOfThree({ isHeld: false });
  expect(await Promise.all(begin(tail))).toContainEqual(eventIds);
  expect(connections()).toBe(1);
});

it("a call of opened() while the loop waits for its first frame does not change the order of the events", async () => {
  const { tail, send, connected, connections } = tailOfThree({ isHeld: true });
  const reading = readThree(tail);
  await connected;
  const opening = tail.opened();
  send();
  await opening;
  expect(await reading).toEqual(eventIds);
  expect(connections()).toBe(1);
});

it("each call of opened() after a failed one has as many tries as the first", async () => {
  let connections = 0;
  const fetch: typeof globalThis.fetch = async () => {
    connections += 1;
    return new Response("", { status: 503 });
  };
  const tail = new Stele({ url: "http://broker.example", fetch, retries: 2 }).subscribe("t", { reconnectMsMax: 1 });
  for (const tries of [3, 6]) {
    await expect(tail.opened()).rejects.toMatchObject({ retry: true });
    expect(connections).toBe(tries);
  }
});
