import { expect, it } from "vitest";
import { createDeferred, type Deferred } from "./deferred.ts";
import { SingleFlight } from "./single-flight.ts";

it("concurrent callers share one read that begins after they called, and only they see its failure", async () => {
  const readings: Deferred<number>[] = [];
  const shared = new SingleFlight(async () => {
    const reading = createDeferred<number>();
    readings.push(reading);
    return reading.promise;
  });
  const early = [shared.read(), shared.read()];
  await new Promise(setImmediate);
  const late = [shared.read(), shared.read()];
  await new Promise(setImmediate);
  expect(readings).toHaveLength(1);
  readings[0]?.reject(new Error("away"));
  await expect(Promise.allSettled(early)).resolves.toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
  await new Promise(setImmediate);
  expect(readings).toHaveLength(2);
  readings[1]?.resolve(2);
  expect(await Promise.all(late)).toEqual([2, 2]);
});
