import type { Client, SendResult } from "../../harness/client.ts";

/** Opens the topic and publishes events to it, one after another. */
export async function publishMany(client: Client, topic: string, count: number): Promise<readonly SendResult[]> {
  await client.open(topic);
  const sent: SendResult[] = [];
  for (let index = 1; index <= count; index += 1) sent.push(await client.publish(topic, `${topic} ${index}`));
  return sent;
}

/** Publishes concurrently to one topic; returns the results in the order of their sequences. */
export async function publishAtOnce(client: Client, topic: string, count: number): Promise<readonly SendResult[]> {
  const publishes = Array.from({ length: count }, (_, index) => client.publish(topic, `${topic} ${index + 1}`));
  return (await Promise.all(publishes)).toSorted((left, right) => sequenceOf(left) - sequenceOf(right));
}

function sequenceOf({ eventId }: SendResult): number {
  return Number(eventId.split("-")[1]);
}

export function idsOf(events: readonly { readonly eventId: string }[]): readonly string[] {
  return events.map(({ eventId }) => eventId);
}
