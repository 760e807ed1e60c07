import { toHex } from "@stele/eth/node";
import { encodeEvents } from "@stele/wire";
import { expect, it } from "vitest";
import { BatchVerifier } from "./batch-verifier.ts";

const encoded = (text: string): Uint8Array => encodeEvents([{ content: Buffer.from(text), extensions: [] }]);

it("trusts an own batch once, and verifies it when it returns again", () => {
  const verifier = new BatchVerifier();
  const events = encoded("a");
  const batch = { count: 1, eventsRoot: toHex(verifier.rootOf(events, 1)), events };
  expect(verifier.fault(batch)).toBeUndefined();
  expect(verifier.fault(batch)).toBeUndefined();
});

it("does not take other bytes, or another count, under a root of ours", () => {
  const verifier = new BatchVerifier();
  const eventsRoot = toHex(verifier.rootOf(encoded("a"), 1));
  expect(verifier.fault({ count: 1, eventsRoot, events: encoded("b") })).toMatchObject({ fault: "wrong-root" });
  expect(verifier.fault({ count: 2, eventsRoot, events: encoded("a") })).toMatchObject({ fault: "wrong-count" });
});
