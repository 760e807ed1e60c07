import { isBrokerError } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { areSameOptions, changeOptions, type DeliveryOptionsCall } from "./delivery-options.ts";

describe("delivery options", () => {
  it.each<[DeliveryOptionsCall, object | undefined]>([
    [{}, undefined],
    [{ form: "interface", concurrency: 1, batchEvents: 0, batchMs: 0 }, undefined],
    [
      { form: "cloudevents", concurrency: 8 },
      { form: "cloudevents", concurrency: 8 },
    ],
    [{ batchEvents: 1 }, { batchEvents: 1 }],
    [
      { batchEvents: 100, batchMs: 20 },
      { batchEvents: 100, batchMs: 20 },
    ],
    [{ batchMs: 20 }, undefined],
    [{ onFailure: "suspend" }, undefined],
    [{ onFailure: "skip" }, { skipAfter: 10 }],
    [{ onFailure: "skip", attemptsMax: 100 }, { skipAfter: 100 }],
  ])("%j become %j", (call, expected) => {
    expect(changeOptions(undefined, call)).toEqual(expected);
  });

  it("keep what a call does not name, and drop what a call sets to its default", () => {
    const options = { form: "cloudevents", batchEvents: 10, batchMs: 5 } as const;
    expect(changeOptions(options, {})).toEqual(options);
    expect(changeOptions(options, { concurrency: 2, batchEvents: 0 })).toEqual({ form: "cloudevents", concurrency: 2 });
    expect(areSameOptions(changeOptions(options, {}), options)).toBe(true);
    expect(changeOptions({ skipAfter: 3 }, { attemptsMax: 5 })).toEqual({ skipAfter: 5 });
    expect(changeOptions({ skipAfter: 3 }, { onFailure: "suspend" })).toBeUndefined();
    expect(areSameOptions(options, undefined)).toBe(false);
  });

  it.each<DeliveryOptionsCall>([
    { form: "json" },
    { concurrency: 0 },
    { concurrency: 65 },
    { concurrency: 1.5 },
    { batchEvents: -1 },
    { batchEvents: 1_001 },
    { batchMs: 60_001 },
    { onFailure: "drop" },
    { attemptsMax: 3 },
    { onFailure: "suspend", attemptsMax: 3 },
    { onFailure: "skip", attemptsMax: 0 },
    { onFailure: "skip", attemptsMax: 101 },
  ])("refuse %j", (call) => {
    const refusal = ((): unknown => {
      try {
        return changeOptions(undefined, call);
      } catch (error) {
        return error;
      }
    })();
    expect(isBrokerError(refusal, "parameterInvalid")).toBe(true);
  });
});
