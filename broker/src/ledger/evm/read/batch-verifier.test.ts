import { toHex } from "@stele/eth/node";
import { encodeEvents } from "@stele/wire";
import { expect, it } from "vitest";
import { commonEventRules } from "../../../domain/event-rules.ts";
import { BatchVerifier } from "./batch-verifier.ts";

const encoded = (text: string): Uint8Array => encodeEvents([{ content: Buffer.from(text), extensions: [] }]);

/** An encoded event with too long a content, so that verification rejects its batch. */
const oversized = encoded("a".repeat(commonEventRules.contentBytesMax + 1));

it("accepts a batch unverified as often as this process sent it, then verifies it", () => {
  const verifier = new BatchVerifier();
  const [eventsRoot] = [1, 2].map(() => toHex(verifier.rootOf(oversized, 1)));
  const batch = { count: 1, eventsRoot: eventsRoot ?? "0x", events: oversized };
  expect(verifier.fault(batch)).toBeUndefined();
  expect(verifier.fault(batch)).toBeUndefined();
  expect(verifier.fault(batch)).toMatchObject({ fault: "beyond-limits" });
});

it("rejects other bytes or another count under the root of a sent batch", () => {
  const verifier = new BatchVerifier();
  const eventsRoot = toHex(verifier.rootOf(encoded("a"), 1));
  expect(verifier.fault({ count: 1, eventsRoot, events: encoded("b") })).toMatchObject({ fault: "wrong-root" });
  expect(verifier.fault({ count: 2, eventsRoot, events: encoded("a") })).toMatchObject({ fault: "wrong-count" });
});
