import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const run = promisify(execFile);
const succeeded = (topic: string) => ({ topic, eventId: expect.any(String), status: "SUCCESS" });

/** Runs the commands of a page in order, and returns their answers. */
async function runPage(page: string, url: string): Promise<readonly unknown[]> {
  const text = readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), "utf8");
  const block = /<!-- calls:begin -->\n```sh\n([^]*?)```\n<!-- calls:end -->/.exec(text)?.[1] ?? "";
  const answers: unknown[] = [];
  for (const command of block.trim().split("\n")) {
    expect(command).toContain("http://127.0.0.1:8080/");
    const here = command.replace("http://127.0.0.1:8080", new URL(url).origin);
    const { stdout } = await run("bash", ["-c", here]);
    answers.push(JSON.parse(stdout));
  }
  return answers;
}

describe("the pages for users of other brokers", () => {
  const running = useWorld(embeddedWorld);

  it.each(["rabbitmq", "kafka"])("docs/from-%s.md has commands that work", async (name) => {
    const topic = `orders/${name}`;
    const [opened, sent, event] = await runPage(`from-${name}`, running().broker.url);
    expect({ opened, sent }).toEqual({ opened: true, sent: succeeded(topic) });
    expect(event).toMatchObject({ topic, content: Buffer.from('{"order":1}').toString("base64") });
  });
});

describe("a broker with the base path and the extension prefix of WeEvent", () => {
  const env = { STELE_BASE_PATH: "/weevent-broker", STELE_EXTENSION_PREFIX: "weevent-" };
  const running = useWorld(embeddedWorld, { env });

  it("docs/from-weevent.md has commands that work", async () => {
    const text = readFileSync(new URL("../../docs/from-weevent.md", import.meta.url), "utf8");
    for (const [name, value] of Object.entries(env)) expect(text).toContain(`${name}=${value}`);
    const [opened, sent, state] = await runPage("from-weevent", running().broker.url);
    expect({ opened, sent }).toEqual({ opened: true, sent: succeeded("orders.weevent") });
    expect(state).toMatchObject({ topicName: "orders.weevent", sequenceNumber: 1 });
    const { eventId } = sent as { readonly eventId: string }; // Checked above.
    const event = await fetch(`${running().broker.url}/rest/getEvent?eventId=${eventId}&groupId=1`);
    expect(await event.json()).toMatchObject({ extensions: { "weevent-format": "json" } });
  });
});
