import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { RecordingPeer } from "../../../engine/testing/recording-peer.ts";
import { TestEngine } from "../../../engine/testing/test-engine.ts";
import { parseCurl } from "../../testing/curl.ts";
import { serve, type Served } from "../../testing/serve.ts";

const page = fileURLToPath(new URL("../../../../../docs/admin.md", import.meta.url));
const documentedBase = "http://127.0.0.1:8080";
const example = /```sh\n(curl .*?)\n```\n\n```json\n.*?\n```/gs;

let engine: TestEngine;
let server: Served;
beforeAll(async () => {
  engine = await TestEngine.start();
  engine.sink.receive("http://down.example/hook", () => ({ status: "failed", reason: "answered 500" }));
  await engine.broker.open({ topic: "orders/eu", groupId: undefined });
  await engine.subscribe("orders/eu");
  await engine.subscribe("orders/#", { url: "http://down.example/hook", format: "JsonRPC" });
  engine.sink.receive("http://picky.example/hook", () => ({ status: "failed", reason: "answered 422" }));
  const options = { onFailure: "skip", attemptsMax: 1 };
  await engine.subscribe("orders/eu", { url: "http://picky.example/hook", options });
  await attach();
  await engine.publish("orders/eu", "1");
  await engine.publish("orders/eu", "2");
  await engine.clock.advance(1_000);
  server = await serve({}, { operator: engine.running.operator });
});
afterAll(async () => {
  await server.close();
  await engine.stop();
});

async function attach(): Promise<void> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, expiryMs: 60_000 } as const;
  const rest = { windowMax: 10, will: undefined, onConnected: () => {} };
  const [attachment] = await Promise.all([
    engine.broker.attach({ ...request, ...rest }, new RecordingPeer()),
    engine.clock.settle(),
  ]);
  const filter = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe([{ ...filter, filter: parseTopicFilter("orders/+") }]);
}

async function answerTo(command: string): Promise<unknown> {
  const { url, init } = parseCurl(command);
  const state = { isDone: false };
  const answering = fetch(url.replace(documentedBase, server.url), init).finally(() => void (state.isDone = true));
  // Orders wait on the virtual clock.
  while (!state.isDone) {
    await new Promise(setImmediate);
    if (command.includes("-d")) await engine.clock.advance(1_000);
  }
  return (await answering).json();
}

// `npx vitest run --project unit broker/src/gateway/admin/v1/docs -u` updates the answers.
it("docs/admin.md has the answers that its commands get", async () => {
  let text = readFileSync(page, "utf8");
  for (const [whole, command = ""] of text.matchAll(example)) {
    const answer = JSON.stringify(await answerTo(command), undefined, 2);
    text = text.replace(whole, () => `\`\`\`sh\n${command}\n\`\`\`\n\n\`\`\`json\n${answer}\n\`\`\``);
  }
  await expect(text).toMatchFileSnapshot(page);
});
