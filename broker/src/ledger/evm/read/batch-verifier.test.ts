import { toHex } from "@stele/eth/node";
import { encodeEvents } from "@stele/wire";
import { expect, it } from "vitest";
import { commonEventRules } from "../../../domain/event-rules.ts";
import { BatchVerifier } from "./batch-verifier.ts";

const encoded = (text: string): Uint8Array => encodeEvents([{ content: Buffer.from(text), extensions: [] }]);

/** An encoded event whose content is too long: verification rejects its batch. */
const oversized = encoded("a".repeat(commonEventRules.contentBytesMax + 1));

it("skips the verification of a batch as many times as this process sent the batch", () => {
  const verifier = new BatchVerifier();
  const [eventsRoot] = [1, 2].map(() => toHex(verifier.rootOf(oversized, 1)));
  const batch = { count: 1, eventsRoot: eventsRoot ?? "0x", events: oversized };
  expect(verifier.fault(batch)).toBeUndefined();
  expect(verifier.fault(batch)).toBeUndefined();
  expect(verifier.fault(batch)).toMatchObject({ fault: "beyond-limits" });
});

it("rejects a batch that has the root of a sent batch, but other bytes or another count", () => {
  const verifier = new BatchVerifier();
  const eventsRoot = toHex(verifier.rootOf(encoded("a"), 1));
  expect(verifier.fault({ count: 1, eventsRoot, events: encoded("b") })).toMatchObject({ fault: "wrong-root" });
  expect(verifier.fault({ count: 2, eventsRoot, events: encoded("a") })).toMatchObject({ fault: "wrong-count" });
});
