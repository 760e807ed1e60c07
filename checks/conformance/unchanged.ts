import { expect } from "vitest";
import type { Client } from "../harness/client.ts";

/** Everything that a refused call could have changed. */
export async function takeSnapshot(client: Client): Promise<unknown> {
  const page = await client.list(0, 99);
  const states = [];
  for (const { topicName } of page.topicInfoList) states.push(await client.state(topicName));
  return { page, states, subscriptions: await client.listSubscriptions() };
}

/** Runs `act` and checks that no topic, event or subscription was added, removed or changed. */
export async function expectUnchanged(client: Client, act: () => Promise<void>): Promise<void> {
  const before = await takeSnapshot(client);
  await act();
  expect(await takeSnapshot(client)).toEqual(before);
}
