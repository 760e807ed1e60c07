import { Stele } from "@stele/client";
import { expect, test, vi } from "vitest";
import { LiveTail } from "./live-tail.ts";

const query = { topic: "#", after: undefined, filter: undefined, groupId: undefined };

function toFrame(eventId: string): string {
  return `id: ${eventId}\ndata: ${JSON.stringify({ topic: "t", eventId, content: "eA==", extensions: {} })}\n\n`;
}

function toResync(after: string, id = after): string {
  return `event: resync\nid: ${id}\ndata: ${JSON.stringify({ after })}\n\n`;
}

/** A tail whose first connections give these texts, and stay open. `requests` are their requests. */
function tailOf(...texts: readonly string[]) {
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const text = texts[requests.length] ?? "";
    requests.push(new Request(input, init));
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(text)) });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const stele = new Stele({ url: "http://broker.example", fetch });
  return { requests, tail: new LiveTail(stele, query, { onFrame: queueMicrotask }) };
}

function idsOf({ events }: LiveTail): readonly (string | undefined)[] {
  return Array.from({ length: events.length }, (_, index) => events.at(index)?.event.eventId);
}

const [first, second] = ["2cf24dba-1-1", "2cf24dba-2-3"];

test("a tail keeps no more events than its view shows", async () => {
  const fetch = async (): Promise<Response> =>
    new Response(toFrame(first) + toFrame(second), { headers: { "content-type": "text/event-stream" } });
  const stele = new Stele({ url: "http://broker.example", fetch });
  const tail = new LiveTail(stele, query, { onFrame: queueMicrotask, eventsMax: 1 });
  tail.resume();
  await vi.waitFor(() => expect(tail.place).toBe(second));
  expect(idsOf(tail)).toEqual([second]);
  tail.stop();
});

test.each([
  ["@2", [first, "2cf24dba-2-4"]],
  ["OFFSET_FIRST", ["2cf24dba-2-4"]],
])("a resync to %s drops the events after that place", async (after, ids) => {
  const { tail } = tailOf(toFrame(first) + toFrame(second) + toResync(after) + toFrame("2cf24dba-2-4"));
  tail.resume();
  await vi.waitFor(() => expect(tail.place).toBe("2cf24dba-2-4"));
  expect(idsOf(tail)).toEqual(ids);
  expect(tail.resync).toEqual({ after });
  tail.stop();
});

test.each([
  ["before", "paused"],
  ["after", "reconnecting"],
])("a tail pauses on request just %s its first connection fails", async (when, status) => {
  const connections: (() => void)[] = [];
  const fetch = () =>
    new Promise<Response>((_resolve, reject) => connections.push(() => reject(new TypeError("refused"))));
  const stele = new Stele({ url: "http://broker.example", fetch });
  const tail = new LiveTail(stele, query, { onFrame: queueMicrotask });
  tail.resume();
  await vi.waitFor(() => expect(connections).toHaveLength(1));
  if (when === "before") tail.pause();
  for (const fail of connections) fail();
  await vi.waitFor(() => expect(tail.status.name).toBe(status));
  tail.pause();
  expect(tail.status.name).toBe("paused");
});

test("a tail ends with a status of its own once the broker asks for a log-in, even if the refusal has already made the tail fail", async () => {
  const refused = { code: 100701, message: "the key is missing" };
  const stele = new Stele({ url: "http://broker.example", fetch: async () => Response.json(refused, { status: 401 }) });
  const failed = new LiveTail(stele, query, { onFrame: queueMicrotask });
  failed.resume();
  await vi.waitFor(() => expect(failed.status.name).toBe("failed"));
  const { requests, tail: live } = tailOf(toFrame(first));
  live.resume();
  await vi.waitFor(() => expect(live.place).toBe(first));
  for (const tail of [failed, live]) {
    tail.stop(); // The clean-up of its view.
    tail.end();
    expect(tail.status).toEqual({ name: "ended" });
  }
  expect(requests.map(({ signal }) => signal.aborted)).toEqual([true]);
});

test.each([
  ["an event", toFrame(first), first],
  ["a reorg", toFrame(first) + toResync("@0", "@0.3"), "@0.3"],
])(
  "a tail that was paused after %s continues at its last id, even if a reorg has removed that place during the pause",
  async (_, text, id) => {
    const { requests, tail } = tailOf(text, toResync("OFFSET_FIRST") + toFrame(second));
    tail.resume();
    await vi.waitFor(() => expect(tail.place).toBe(id));
    tail.pause();
    tail.resume();
    await vi.waitFor(() => expect(tail.place).toBe(second));
    expect(requests.map(({ headers }) => headers.get("last-event-id"))).toEqual([null, id]);
    expect(idsOf(tail)).toEqual([second]);
    tail.stop();
  },
);
