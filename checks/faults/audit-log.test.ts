import { join } from "node:path";
import { expect, it } from "vitest";
import { type BrokerOptions, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { HttpClient } from "../harness/http-client.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

/** Each round writes two lines of about 200 bytes to the audit log. All rounds together exceed the 64 KiB of a pipe. */
const rounds = 300;

/** Makes audited changes on a broker whose audit log cannot be written. Health must warn, and the broker must still publish and stop cleanly. */
async function expectServes(options: BrokerOptions, warning: RegExp): Promise<void> {
  await using broker = await startBroker(options);
  await using client = new Client(broker.url);
  await client.open("audited");
  for (let round = 0; round < rounds; round += 1) {
    await client.unSubscribe(await client.subscribe({ topic: "audited", url: "http://127.0.0.1:9999/" }));
  }
  await using http = new HttpClient(broker.url);
  await until("health warns", async () => {
    const { status, text } = await http.send({ method: "GET", path: "/health/ready" });
    return status === 200 && warning.test(text);
  });
  await client.publish("audited", "still served");
  expect((await broker.stop()).code).toBe(0);
}

it("a broker whose audit log is on a full disk still serves, and warns in health", async () => {
  using folder = createTempFolder();
  await expectServes(
    { dataDir: folder.path, env: { STELE_AUDIT_LOG: "/dev/full" } },
    /the audit log cannot be written: ENOSPC[^"]*; \d+ lines were dropped/,
  );
});

it("a broker whose audit log goes to a standard output that nobody reads still serves, and warns in health", async () => {
  using folder = createTempFolder();
  const env = { STELE_AUDIT_LOG: "stdout", STELE_LOG_LEVEL: "debug", UNREAD: join(folder.path, "unread") };
  const shell = 'mkfifo "$UNREAD" && exec 3<>"$UNREAD" && exec "$@" >&3';
  await expectServes(
    { dataDir: join(folder.path, "data"), env, shell },
    /the audit log cannot be written: nobody reads the standard output; \d+ lines were dropped/,
  );
});
