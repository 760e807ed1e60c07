import { expect, test } from "vitest";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { Endpoint } from "./endpoint.ts";
import { EndpointError } from "./endpoint-error.ts";

test("counts one failure if three concurrent requests get no answer, and is down if a later request gets none either", () => {
  const connection = {
    name: "node",
    canNotify: false,
    request: async () => undefined,
    requestAll: async () => [],
    close: async () => {},
  };
  const endpoint = new Endpoint(connection, new VirtualClock());
  const lost = new EndpointError("node: connection lost", { reach: "unknown" });
  for (let request = 0; request < 3; request += 1) endpoint.onFailure(lost, 0);
  expect([endpoint.failures, endpoint.reason]).toEqual([1, undefined]);
  endpoint.onFailure(lost, 1);
  expect([endpoint.failures, endpoint.reason]).toEqual([2, "node: connection lost"]);
});
