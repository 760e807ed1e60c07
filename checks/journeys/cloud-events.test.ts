import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { describe, expect, it } from "vitest";
import { canImport } from "../harness/python.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const script = fileURLToPath(new URL("cloud-events/read.py", import.meta.url));
const canRun = canImport("import cloudevents.core.formats.json");
const running = useWorld(embeddedWorld);

interface Read {
  readonly attributes: Readonly<Record<string, string>>;
  readonly data: unknown;
}

/** The first `count` lines of a tail, as text. */
async function readLines(query: string, count: number): Promise<string> {
  const headers = { accept: "application/x-ndjson" };
  const { body } = await request(`${running().broker.url}/tail?${query}`, { headers });
  let text = "";
  for await (const chunk of body as AsyncIterable<Buffer>) {
    text += chunk.toString();
    if (text.split("\n").length > count) break;
  }
  return text;
}

describe.runIf(canRun)("CloudEvents for Python (needs the package cloudevents)", () => {
  it("CloudEvents for Python reads the events of a tail", async () => {
    const { client } = running();
    await client.open("orders/new");
    const { topicAddress } = await client.state("orders/new");
    const publish = (content: string, extensions: Readonly<Record<string, string>>): Promise<{ eventId: string }> =>
      client.publish("orders/new", content, extensions);
    const first = await publish('{"n": 1,\n "s": "ü"}', { "svc-format": "json", "svc-order-id": "7" });
    await publish("grüße", { "svc-format": "text/plain", "svc-ce-type": "com.acme.greeting" });
    await publish("bytes", {});
    const lines = await readLines("topic=%23&after=OFFSET_FIRST&format=cloudevents", 3);
    const output = execFileSync(process.env["CHECKS_PYTHON"] ?? "python3", [script], { input: lines });
    const events = output
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Read); // As the script prints them.
    expect(events[0]).toMatchObject({
      attributes: {
        id: first.eventId,
        subject: "orders/new",
        type: "stele.event",
        datacontenttype: "application/json",
        sequence: "0000000000000001",
        orderid: "7",
      },
      data: { n: 1, s: "ü" },
    });
    expect(events[0]?.attributes["source"]).toMatch(new RegExp(`^eip155:\\d+:${topicAddress}$`));
    const aheadMs = Date.now() - Date.parse(events[0]?.attributes["time"] ?? "");
    expect(Math.abs(aheadMs)).toBeLessThan(600_000);
    expect(events[1]).toMatchObject({ attributes: { type: "com.acme.greeting" }, data: "grüße" });
    expect(events[2]).toMatchObject({
      attributes: { datacontenttype: "application/octet-stream" },
      data: { base64: Buffer.from("bytes").toString("base64") },
    });
  });
});
