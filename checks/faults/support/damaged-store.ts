import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import type { Acknowledged } from "./acknowledged.ts";

/** A data folder with events, and a subscription whose receiver accepted the first half of them. */
export interface FilledFolder extends Disposable {
  readonly events: readonly Acknowledged[];
  readonly subscriptionId: string;
  /** A fresh copy of the folder. */
  copy(): TempFolder;
}

export const damageTopics = ["damage/a", "damage/b", "damage/c"];

/** Fills a new data folder with `count` events, published one by one and many at once, and stops the broker. */
export async function fillFolder(count: number): Promise<FilledFolder> {
  const folder = createTempFolder();
  await using broker = await startBroker({ dataDir: folder.path });
  await using client = new Client(broker.url);
  await using receiver = await startReceiver();
  for (const topic of damageTopics) await client.open(topic);
  const subscriptionId = await client.subscribe({ topic: "#", url: receiver.url });
  const events: Acknowledged[] = [];
  const publish = async (index: number): Promise<void> => {
    const topic = damageTopics[index % damageTopics.length] ?? "";
    const content = `${"event".repeat(1 + (index % 40))} ${index}`;
    events.push({ topic, content, eventId: (await client.publish(topic, content)).eventId });
  };
  for (let index = 0; index < count / 4; index += 1) await publish(index);
  await Promise.all(Array.from({ length: count / 4 }, (_, index) => publish(count / 4 + index)));
  await receiver.waitForCount(events.length);
  await receiver.refuse();
  await Promise.all(Array.from({ length: count / 2 }, (_, index) => publish(count / 2 + index)));
  await broker.stop();
  const copy = (): TempFolder => {
    const other = createTempFolder();
    cpSync(folder.path, other.path, { recursive: true });
    rmSync(join(other.path, "lock"), { force: true });
    return other;
  };
  return { events, subscriptionId, copy, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

export function storeOf(folder: TempFolder): string {
  return join(folder.path, "store.sqlite");
}

export function chainOf(folder: TempFolder): string {
  return join(folder.path, "chain.sqlite");
}

/** Deletes the store, so that the next start rebuilds it from the chain. */
export function deleteStore(folder: TempFolder): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(storeOf(folder) + suffix, { force: true });
}

/** Changes a file in place. */
export function changeFile(file: string, change: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  change(bytes);
  writeFileSync(file, bytes);
}

/** Byte offset of the first occurrence of the text. @throws Error if there is none. */
export function placeOfText(bytes: Buffer, text: string): number {
  const at = bytes.indexOf(text);
  if (at < 0) throw new Error(`the file does not hold ${text}`);
  return at;
}
