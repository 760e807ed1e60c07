import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

/** The broker's limit of file descriptors: the lowest with which it starts. */
const descriptors = 512;

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

async function openSocket(port: number): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  sockets.add(socket);
  socket.on("error", () => {}); // The broker may refuse the connection.
  await once(socket, "connect");
}

it("a broker whose file descriptors strangers use up logs the shortage, is not ready, and recovers when the strangers leave", async () => {
  using folder = createTempFolder();
  await using broker = await startBroker({
    dataDir: folder.path,
    env: { STELE_MQTT_PORT: "off", STELE_STOMP_PORT: "off" },
    shell: `ulimit -n ${descriptors}; exec "$@"`,
  });
  await using client = new Client(broker.url);
  await client.open("held");
  const { eventId } = await client.publish("held", "before");
  const port = Number(new URL(broker.url).port);
  for (let index = 0; index < descriptors; index += 1) await openSocket(port);
  await until("the broker logs that no descriptor is left", () => broker.stdout().includes("no file descriptor left"));
  // The client still has its connection from before.
  expect(await client.isReady()).toBe(false);
  expect(await client.listGroupFailures()).toEqual([expect.stringMatching(/no file descriptor left: raise the limit/)]);
  expect(await client.getEvent(eventId)).toMatchObject({ eventId });
  expect(await client.publish("held", "meanwhile")).toMatchObject({ status: "SUCCESS" });
  for (const socket of sockets) socket.destroy();
  await until("the broker is ready", () => client.isReady());
  await using another = new Client(broker.url);
  expect(await another.publish("held", "after")).toMatchObject({ status: "SUCCESS" });
  expect(broker.stdout()).toContain("file descriptors available again");
  expect((await broker.stop()).code).toBe(0);
});
