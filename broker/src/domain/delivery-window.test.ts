import { expect, it } from "vitest";
import { DeliveryWindow } from "./delivery-window.ts";
import { toPosition } from "./position.ts";
import { parseTopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";

const topic = parseTopicName("a");

it("lowest is the oldest position of the session's stream, whatever retained and shared events are in flight", () => {
  const window = new DeliveryWindow();
  window.give({ position: toPosition(1, 0), topic, qos: 1, isRetained: true });
  window.give({ position: toPosition(2, 0), topic, qos: 1, share: parseTopicFilter("$share/s/a") });
  expect(window.lowest).toBeUndefined();
  window.give({ position: toPosition(5, 0), topic, qos: 1 });
  window.give({ position: toPosition(3, 0), topic, qos: 1, isRetained: true });
  expect(window.lowest).toBe(toPosition(5, 0));
});
