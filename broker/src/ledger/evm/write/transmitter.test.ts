import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";

test.each([
  ["transaction underpriced", true],
  ["oversized data", false],
])("a refusal for %s tells the caller that the transaction is not too large: %s", async (refusal, isKnown) => {
  const { node, clock, sender, signer } = new SenderWorld({});
  node.refusal = new Error(refusal);
  let isAccepted = false;
  const onAccepted = (): void => void (isAccepted = true);
  const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1, onAccepted };
  void sender.send(request, new AbortController().signal).catch(() => {});
  await clock.settle();
  expect(isAccepted).toBe(isKnown);
});
