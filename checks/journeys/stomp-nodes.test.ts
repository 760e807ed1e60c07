import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import { portOf } from "../harness/listener-port.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import type { Headers } from "./stomp/journey.ts";
import { RawClient } from "./stomp/raw-client.ts";

const topic = "moves";

/** Connects to a node, and starts or resumes the subscription there. */
async function subscribeAt(cluster: Cluster, node: number, headers: Headers): Promise<RawClient> {
  const broker = cluster.nodes[node]?.broker;
  if (broker === undefined) throw new Error(`there is no node ${node}`);
  const client = new RawClient(portOf(broker, "STOMP"), "1.2");
  await client.connect();
  await client.subscribe(topic, headers);
  return client;
}

it.runIf(hasPostgres)(titleOf("a durable subscription resumes on another node, even after kill -9"), async () => {
  await using cluster = await Cluster.start({ env: { STELE_STOMP_PORT: "0" } });
  const durable = { id: "durable", ack: "client", "svc-subscriptionId": randomUUID() };
  await cluster.client.open(topic);
  const first = await subscribeAt(cluster, 0, durable);
  await cluster.client.publish(topic, "acknowledged");
  first.ack(await first.next());
  await first.disconnect();

  await cluster.client.publish(topic, "not acknowledged");
  const second = await subscribeAt(cluster, 1, durable);
  expect((await second.next()).body).toBe("not acknowledged");
  await cluster.nodes[1]?.kill();

  const third = await subscribeAt(cluster, 2, durable);
  expect((await third.next()).body).toBe("not acknowledged");
  await cluster.nodes[2]?.client.publish(topic, "after kill -9");
  expect((await third.next()).body).toBe("after kill -9");
  await third.disconnect();
});
