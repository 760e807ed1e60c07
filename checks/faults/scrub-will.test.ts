import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAsync } from "mqtt";
import { expect, it } from "vitest";
import { startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const topic = "scrub/will";

it("stele scrub publishes no will of a session that was connected when the broker was killed", async () => {
  using folder = createTempFolder();
  {
    await using broker = await startBroker({ dataDir: folder.path, env: { STELE_MQTT_PORT: "0" } });
    await using client = new Client(broker.url);
    await client.open(topic);
    const [, port = ""] = /mqtt:\/\/\S+:(\d+)/.exec(broker.stderr()) ?? [];
    const device = await connectAsync(`mqtt://127.0.0.1:${port}`, {
      clientId: "device",
      clean: false,
      reconnectPeriod: 0,
      will: { topic, payload: Buffer.from("gone"), qos: 1, retain: false },
    });
    await broker.kill();
    await device.endAsync(true);
  }
  for (let round = 0; round < 2; round += 1) {
    expect(await runStele(["scrub", "--data-dir", folder.path])).toMatchObject({ code: 0 });
  }
  // The broker of a restored folder publishes no will either, so it shows what the commands did.
  writeFileSync(join(folder.path, "restored.json"), "{}");
  await using broker = await startBroker({ dataDir: folder.path });
  await using client = new Client(broker.url);
  expect(await client.state(topic)).toMatchObject({ sequenceNumber: 0 });
});
