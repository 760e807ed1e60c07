import { renderCloudEvent } from "@stele/wire";
import { expect, it } from "vitest";
import { fromCloudEvent } from "./cloud-event.ts";

it("reads back every extension that a tail wrote, also those that became no attribute", () => {
  const extensions = {
    "svc-format": "json",
    "svc-ce-type": "com.acme.order",
    "svc-ce-dataschema": "urn:order",
    "svc-orderid": "7",
    "svc-order-id": "8",
    "svc-sequence": "99",
    "svc-line": "a\nb",
  };
  const line = renderCloudEvent({
    eventId: "2cf24dba-59-1124",
    topic: "orders/new",
    sequence: 59,
    content: new TextEncoder().encode("{}"),
    base64: () => "",
    extensions: Object.entries(extensions),
    extensionPrefix: "svc-",
    source: "eip155:20261:0x00000000000000000000000000000000000000aa",
    type: "stele.event",
    time: 0,
  });
  const read = fromCloudEvent(line, { topic: "", prefix: "svc-" });
  expect(read).toMatchObject({ topic: "orders/new", content: "{}", extensions });
});
