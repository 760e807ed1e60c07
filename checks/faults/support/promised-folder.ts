import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "../../harness/client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { until } from "../../harness/until.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import type { Acknowledged, Promised } from "./acknowledged.ts";
import { startLocalBroker } from "./local-broker.ts";
import { leaveSessions } from "./promised-session.ts";
import { askForProof } from "./reading.ts";

/** Copies of one data folder at three moments. `promised` is what the two later copies must have. */
export interface PromisedFolder extends Disposable {
  readonly promised: Promised;
  /** Makes a fresh copy. */
  copy(state: FolderState): TempFolder;
  path(state: FolderState): string;
}

/** `earlier`: after a clean stop in the middle. `stopped`, `killed`: after a clean stop or a kill that followed the last event. */
export type FolderState = "earlier" | "stopped" | "killed";

const earlyTopics = ["damage/a", "damage/b", "damage/c"];
/** Opened in a later run, so that earlier pages of the store lack it. */
const lateTopic = "damage/late";
const topics = [...earlyTopics, lateTopic];

/** Publishes `count` events in two runs, one by one and many at once. With `isDropped`, a third run drops the copies of the events in the store. */
export async function fillPromisedFolder(count: number, { isDropped = false } = {}): Promise<PromisedFolder> {
  const root = createTempFolder();
  const path = (state: FolderState | "data"): string => join(root.path, state);
  const filling = new Filling();
  await filling.begin(path("data"), count / 2);
  saveCopy(path("data"), path("earlier"));
  // A kill of an idle broker would leave the same files.
  const onFilled = (): void => saveCopy(path("data"), path("killed"));
  await filling.goOn(path("data"), { count, onFilled: isDropped ? () => {} : onFilled });
  if (isDropped) await filling.drop(path("data"), onFilled);
  saveCopy(path("data"), path("stopped"));
  const copy = (state: FolderState): TempFolder => {
    const folder = createTempFolder();
    cpSync(path(state), folder.path, { recursive: true });
    return folder;
  };
  return { promised: filling.promised(), copy, path, [Symbol.dispose]: () => root[Symbol.dispose]() };
}

function saveCopy(from: string, to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from)) if (!/^lock|-lock/.test(name)) cpSync(join(from, name), join(to, name));
}

class Filling {
  readonly #events: Acknowledged[] = [];
  readonly #delivered = new Set<string>();
  readonly #blockHashes = new Map<number, string>();
  #subscriptionId = "";
  #lateSubscriptionId = "";
  #topics = earlyTopics;
  #retained: Acknowledged | undefined;

  async begin(dataDir: string, count: number): Promise<void> {
    await using broker = await startLocalBroker({ dataDir, log: [] });
    await using client = new Client(broker.url);
    await using receiver = await startReceiver();
    for (const topic of earlyTopics) await client.open(topic);
    await leaveSessions(broker.mqttPort);
    this.#subscriptionId = await client.subscribe({ topic: "#", url: receiver.url });
    await this.#publish(client, count / 2);
    for (const { eventId } of await receiver.waitForCount(this.#events.length)) this.#delivered.add(eventId);
    await receiver.refuse();
    await this.#publish(client, count);
  }

  async goOn(dataDir: string, { count, onFilled }: { readonly count: number; readonly onFilled: () => void }) {
    await using broker = await startLocalBroker({ dataDir, log: [] });
    await using client = new Client(broker.url);
    await using receiver = await startReceiver();
    await client.open(lateTopic);
    this.#topics = topics;
    this.#lateSubscriptionId = await client.subscribe({ topic: lateTopic, url: receiver.url });
    await this.#publish(client, count);
    await this.#retain(client);
    for (const { eventId } of this.#events) await this.#keepHash(client, eventId);
    onFilled();
  }

  /** Publishes until the chain has younger blocks and the broker has dropped the copies of all earlier events. */
  async drop(dataDir: string, onFilled: () => void): Promise<void> {
    await using broker = await startLocalBroker({ dataDir, log: [], env: { STELE_STORE_RETENTION_MS: "1000" } });
    await using client = new Client(broker.url);
    const last = Number(this.#events.at(-1)?.eventId.split("-")[2]);
    await until("the copies are dropped", async () => {
      await this.#publishOne(client, this.#events.length);
      const { text } = await client.http.send({ method: "GET", path: "/metrics" });
      return Number(/^stele_dropped_block\{group="1"\} (.*)$/m.exec(text)?.[1]) >= last;
    });
    for (const { eventId } of this.#events) await this.#keepHash(client, eventId);
    onFilled();
  }

  promised(): Promised {
    const sent = new Map(this.#events.map(({ content, topic }) => [content, topic]));
    const events = this.#events;
    const [subscriptionId, lateSubscriptionId] = [this.#subscriptionId, this.#lateSubscriptionId];
    const own = { subscriptionId, lateSubscriptionId, delivered: this.#delivered, blockHashes: this.#blockHashes };
    return { topics, events, sent, retained: this.#retained, ...own };
  }

  /** Publishes until there are `upTo` events: half of the new ones one by one, half at once. */
  async #publish(client: Client, upTo: number): Promise<void> {
    const { length } = this.#events;
    const alone = Math.floor((upTo - length) / 2);
    for (let index = length; index < length + alone; index += 1) await this.#publishOne(client, index);
    const together = Array.from({ length: upTo - length - alone }, (_, index) => length + alone + index);
    await Promise.all(together.map((index) => this.#publishOne(client, index)));
  }

  async #publishOne(client: Client, index: number): Promise<void> {
    const topic = this.#topics[index % this.#topics.length] ?? "";
    const content = `${"event".repeat(1 + (index % 40))} ${index}`;
    this.#events.push({ topic, content, eventId: (await client.publish(topic, content)).eventId });
  }

  async #retain(client: Client): Promise<void> {
    const [topic = ""] = topics;
    const content = "the retained event";
    const { eventId } = await client.publish(topic, content, { "svc-retain": "true" });
    this.#retained = { topic, content, eventId };
    this.#events.push(this.#retained);
  }

  async #keepHash({ http }: Client, eventId: string): Promise<void> {
    const block = Number(eventId.split("-")[2]);
    if (this.#blockHashes.has(block)) return;
    this.#blockHashes.set(block, (await askForProof(http, eventId)).blockHash);
  }
}
