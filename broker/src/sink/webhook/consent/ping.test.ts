import { expect, it } from "vitest";
import { notificationTo } from "../testing/notification.ts";
import { encodePing } from "./ping.ts";

const id = "5f1c0b2e-0000-4000-8000-000000000001";

it.each([
  ["RESTful", undefined],
  ["JsonRPC", undefined],
  ["RESTful", { form: "cloudevents" }],
  ["RESTful", { form: "cloudevents-binary" }],
] as const)("omits the tenant from the subscription's identifier: %s, %j", (format, options) => {
  const target = { ...notificationTo({ url: "http://receiver/" }).subscription, id: `acme/${id}`, format, options };
  const text = encodePing(target as never, "ping-1").toString();
  expect(text).toContain(`"${id}"`);
  expect(text).not.toContain("acme");
});
