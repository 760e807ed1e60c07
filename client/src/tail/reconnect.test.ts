import { expect, it } from "vitest";
import { Stele } from "../index.ts";

const event = { topic: "t", eventId: "2cf24dba-1-1", content: "", extensions: {} };
const headers = { "content-type": "text/event-stream" };
const stream = (id: string): Response =>
  new Response(`id: ${id}\ndata: ${JSON.stringify({ ...event, eventId: id })}\n\n`, { headers });

/** Reads a tail that connects, then gets `answer`, then connects again. */
async function readThrough(answer: () => Response): Promise<readonly string[]> {
  const answers = [() => stream("2cf24dba-1-1"), answer, () => stream("2cf24dba-2-2")];
  const fetch: typeof globalThis.fetch = async () => answers.shift()?.() ?? new Response(null, { status: 404 });
  const tail = new Stele({ url: "http://broker.example", fetch }).subscribe("t", { reconnectMsMax: 1 });
  const read: string[] = [];
  for await (const { eventId } of tail) {
    read.push(eventId);
    if (read.length === 2) break;
  }
  return read;
}

it.each([
  ["a proxy's page with 408", () => new Response("<html>", { status: 408 })],
  ["a proxy's JSON with 408", () => Response.json({ message: "Request Timeout" }, { status: 408 })],
  ["a proxy's JSON with 502", () => Response.json({ message: "Bad Gateway" }, { status: 502 })],
  [
    "the broker's status 500 with retry false",
    () =>
      Response.json(
        { code: 200000, message: "unknown error" },
        { status: 500, headers: { "stele-error-retry": "false" } },
      ),
  ],
])("a tail that was connected reconnects after %s", async (_what, answer) => {
  expect(await readThrough(answer)).toEqual(["2cf24dba-1-1", "2cf24dba-2-2"]);
});

it.each([
  [
    "the broker's 403",
    () => Response.json({ code: 100702, message: "not allowed" }, { status: 403 }),
    { code: 100702 },
  ],
  ["a proxy's JSON with 404", () => Response.json({ message: "Not Found" }, { status: 404 }), { code: undefined }],
])("a tail that was connected throws after %s", async (_what, answer, error) => {
  await expect(readThrough(answer)).rejects.toMatchObject({ ...error, retry: false });
});

it("a tail with the place of an earlier tail continues there, and calls onResync after a reorg that removed the place", async () => {
  const asked: (readonly [string | null, string | null])[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    asked.push([request.headers.get("last-event-id"), new URL(request.url).searchParams.get("after")]);
    const resync = 'event: resync\nid: @0.1\ndata: {"after":"@0"}\n\n';
    return asked.length > 1 ? stream("2cf24dba-1-2") : new Response(resync, { headers });
  };
  const resyncs: string[] = [];
  const onResync = ({ after }: { readonly after: string }): void => void resyncs.push(after);
  const options = { place: "2cf24dba-1-1", onResync, reconnectMsMax: 1 };
  const tail = new Stele({ url: "http://broker.example", fetch }).subscribe("t", options);
  expect(tail.place).toBe("2cf24dba-1-1");
  await tail.opened();
  expect(asked).toEqual([["2cf24dba-1-1", null]]);
  for await (const { eventId } of tail) {
    expect(eventId).toBe("2cf24dba-1-2");
    break;
  }
  expect(asked).toEqual([
    ["2cf24dba-1-1", null],
    ["@0.1", null],
  ]);
  expect(resyncs).toEqual(["@0"]);
});

it("onReconnect gets the reason why the last connection ended, not the reason that the broker gave for an earlier one", async () => {
  const end = 'event: end\ndata: {"reason":"stopping"}\n\n';
  const answers = [new Response(`id: @0\n${end}`, { headers }), stream("2cf24dba-1-1"), stream("2cf24dba-2-2")];
  const fetch: typeof globalThis.fetch = async () => answers.shift() ?? new Response(null, { status: 404 });
  const reasons: string[] = [];
  const onReconnect = ({ reason }: { readonly reason: string }): void => void reasons.push(reason);
  const tail = new Stele({ url: "http://broker.example", fetch }).subscribe("t", { onReconnect, reconnectMsMax: 1 });
  for await (const { eventId } of tail) if (eventId === "2cf24dba-2-2") break;
  expect(reasons).toEqual(["the broker ended the tail: stopping", "the connection ended"]);
});
