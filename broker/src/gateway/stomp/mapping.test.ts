import { expect, it } from "vitest";
import type { Delivery } from "../../engine/session/peer.ts";
import { encodeFrame } from "./codec/encode-frame.ts";
import { toMessageHeaders, toPublishCall } from "./mapping.ts";

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

it("the W3C trace of a SEND becomes an extension, and again a header of the MESSAGE", () => {
  const headers = [
    ["destination", "a"],
    ["traceparent", trace],
    ["traceparent", "second"],
    ["own", "1"],
  ] as const;
  const { extensions } = toPublishCall({ command: "SEND", headers, body: Buffer.from("x") }, "svc-");
  expect(extensions).toEqual([
    ["svc-traceparent", trace],
    ["svc-user-own", "1"],
  ]);
  const event = { topic: "a", content: new Uint8Array([1]), extensions };
  const delivery = { event, eventId: "" } as unknown as Delivery; // Only the fields that the mapping reads.
  const given = toMessageHeaders(delivery, { prefix: "svc-", delivery: [] });
  expect(given.filter(([name]) => name.includes("trace"))).toEqual([
    ["svc-traceparent", trace],
    ["traceparent", trace],
  ]);
});

it("no extension becomes a STOMP protocol header, whatever the extension prefix is", () => {
  const extensions = [
    ["subscription", "x\n\n\0ERROR\nmessage:forged\n\n\0"],
    ["s-own", "1"],
  ] as const;
  const event = { topic: "a", content: new Uint8Array(), extensions };
  const delivery = { event, eventId: "a-1-1" } as unknown as Delivery; // Only the fields that the mapping reads.
  const headers = toMessageHeaders(delivery, { prefix: "s", delivery: [] });
  expect(encodeFrame({ command: "MESSAGE", headers }, "1.0").toString()).toBe(
    "MESSAGE\ndestination:a\neventId:a-1-1\ncontent-length:0\ns-own:1\n\n\0",
  );
});
