import { expect, it, vi } from "vitest";
import { Stele } from "../index.ts";

const content = "x".repeat(100_000);
const eventsTotal = 40;

function toFrame(sequence: number): string {
  const eventId = `2cf24dba-${sequence}-${sequence}`;
  return `id: ${eventId}\ndata: ${JSON.stringify({ topic: "t", eventId, content, extensions: {} })}\n\n`;
}

/** A broker whose tails give all events after their place, one for each read. `places` has the place of each request, and `cancels` counts closed connections. */
function createBroker() {
  const places: (string | null)[] = [];
  const counts = { cancels: 0 };
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const place = new Request(input, init).headers.get("last-event-id");
    places.push(place);
    let sequence = Number(place?.split("-")[1] ?? 0);
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          sequence += 1;
          if (sequence <= eventsTotal) controller.enqueue(new TextEncoder().encode(toFrame(sequence)));
        },
        cancel: () => void (counts.cancels += 1),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  return { places, counts, stele: new Stele({ url: "http://broker.example", fetch }) };
}

it("a tail with a slow loop reads ahead, closes its connection beyond 1 MiB, and goes on without a gap or a repeat", async () => {
  const { places, counts, stele } = createBroker();
  const onReconnect = vi.fn<() => void>();
  const read: number[] = [];
  for await (const { eventId } of stele.subscribe("t", { onReconnect })) {
    read.push(Number(eventId.split("-")[1]));
    if (read.length === 1) await vi.waitFor(() => expect(counts.cancels).toBe(1)); // While the loop waits.
    if (read.length === eventsTotal) break;
  }
  expect(read).toEqual(Array.from({ length: eventsTotal }, (_, index) => index + 1));
  expect(places[1]).toMatch(/^2cf24dba-1[12]-/);
  expect(onReconnect).not.toHaveBeenCalled();
});
