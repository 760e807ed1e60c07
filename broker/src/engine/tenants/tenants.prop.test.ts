import { expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { type SessionFilter, sessionMarks } from "../../domain/session-filter.ts";
import { toClientsId } from "../../domain/subscription.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Caller } from "../access/caller.ts";
import { formatKeyCredential } from "../access/credential.ts";
import type { Attachment, Broker, PublishOutcome } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const actions = ["open", "close", "publish", "subscribe", "read", "unsubscribe"] as const;
const rules: readonly AccessRule[] = [{ effect: "allow", actions }];

/** The tenants of the clients: two whose names also occur in topics and in MQTT's reserved `$share`, and undefined for no tenant. */
const tenants = ["acme", "share", undefined] as const;
type Tenant = (typeof tenants)[number];

const topics = ["a", "a/b", "b/c", "$x", "$x/y", "acme", "acme/a", "share/a", "$tenant/acme/$x", "/a", "a/", "", "a+"];
const filters = ["#", "+", "+/#", "a/#", "+/a", "$x/#", "$tenant/#", "acme/#", "share/#", "a", "b/c", "a#", "", "$x/+"];
const shares = ["$share/s/#", "$share/s/a/#", "$share/acme/+/a", "$share/$x/#"];
const ids = [1, 2, 3].map((digit) => `ffffffff-0000-4000-8000-00000000000${digit}`);
const keys = ["one", "two"];

/** Returns a pseudo-random choice, which is the same in each run. */
function createChoice(seed: number) {
  let state = seed * 2_654_435_761;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return <Item>(items: readonly Item[]): Item => {
    const at = Math.floor(next() * items.length);
    for (const item of items.slice(at)) return item;
    throw new Error("nothing to choose from");
  };
}

/** A client of one tenant, which records what it does and sees. */
class Client {
  readonly trace: string[] = [];
  readonly #engine: TestEngine;
  readonly #caller: Caller;
  readonly #name: string;
  readonly #choose: ReturnType<typeof createChoice>;
  readonly #held = new Map<string, { readonly peer: RecordingPeer; readonly attachment: Attachment; seen: number }>();
  readonly #eventIds: string[] = ["00000000-1-1", "no"];
  #attemptsSeen = 0;

  constructor(engine: TestEngine, tenant: Tenant, seed: number) {
    this.#engine = engine;
    this.#name = String(tenant);
    this.#choose = createChoice(seed);
    const principal = this.#calls.authenticate(credentialOf(tenant), testCaller);
    if (principal instanceof Promise) throw new Error("an API key must authenticate synchronously");
    this.#caller = { ...testCaller, principal };
  }

  get #calls(): Broker {
    return this.#engine.running.calls;
  }

  async step(): Promise<void> {
    const choose = this.#choose;
    const name = choose(steps);
    const topic = choose(topics);
    const said = await this.#say(() => this.#run(name, topic));
    await this.#engine.clock.settle();
    this.trace.push(`${name} ${JSON.stringify(topic)}: ${said}${this.#look()}`);
  }

  async #say(run: () => unknown): Promise<string> {
    try {
      const running = Promise.resolve(run());
      await Promise.race([running.catch(() => {}), this.#engine.clock.settle()]);
      return JSON.stringify(await running) ?? "done";
    } catch (error) {
      const { code, message } = error as { readonly code: number; readonly message: string };
      // The order of a subscription's filters is not guaranteed.
      const words = code === 100_108 ? message.split(/["," ]/).toSorted() : [message];
      return `${code} ${words.join(" ")}`;
    }
  }

  #run(name: (typeof steps)[number], topic: string): unknown {
    const [choose, calls, caller, call] = [this.#choose, this.#calls, this.#caller, { topic, groupId: undefined }];
    const runs: { readonly [Name in typeof name]: () => unknown } = {
      open: () => calls.open(caller, call),
      close: () => calls.close(caller, call),
      exist: () => calls.exist(caller, call),
      state: () => this.#state(topic),
      list: () => this.#list(choose([0, 1]), choose([2, 50])),
      publish: () => this.#publish(topic, choose([true, false])),
      transaction: () => this.#transaction([topic, choose(topics)]),
      getEvent: () => this.#read(choose(this.#eventIds)),
      subscribe: () => this.#subscribe(choose(filters), choose([...ids, "", "no", "acme/x", undefined])),
      unSubscribe: () => calls.unSubscribe(caller, { subscriptionId: choose([...ids, "", "no"]) }),
      attach: () => this.#attach(choose(keys), choose([...topics, undefined])),
      stream: () => this.#stream(choose(ids), [choose(filters), choose([...filters, ...shares])]),
      filters: () => this.#filter(choose(keys), choose([...filters, ...shares])),
      leave: () => this.#leave(choose([...keys, ...ids])),
    };
    return runs[name]();
  }

  async #state(topic: string): Promise<unknown> {
    const { name, sequence, closed } = await this.#calls.state(this.#caller, { topic, groupId: undefined });
    return [name, sequence, closed];
  }

  async #list(pageIndex: number, pageSize: number): Promise<unknown> {
    const page = await this.#calls.list(this.#caller, { pageIndex, pageSize, groupId: undefined });
    return [page.total, page.topics.map(({ name }) => name)];
  }

  async #read(eventId: string): Promise<unknown> {
    const { topic, sequence, content } = await this.#calls.getEvent(this.#caller, { eventId, groupId: undefined });
    return [topic, sequence, Buffer.from(content).toString()];
  }

  async #publish(topic: string, isRetained: boolean): Promise<unknown> {
    const content = Buffer.from(`by ${this.#name}`);
    const extensions = isRetained ? [[`svc-${sessionMarks.retain}`, "true"] as const] : [];
    const key = this.#choose([undefined, "k1", "k2"]);
    const outcome = await new Promise<PublishOutcome>((resolve) =>
      this.#calls.submit(this.#caller, { topic, groupId: undefined, content, extensions, key }, resolve),
    );
    if (outcome.status === "REFUSED") throw outcome.error;
    if (outcome.eventId !== "") this.#eventIds.push(outcome.eventId);
    return [outcome.topic, outcome.eventId.split("-")[1]];
  }

  #transaction(names: readonly string[]): Promise<unknown> {
    const content = Buffer.from(`by ${this.#name}`);
    const calls = names.map((topic) => ({ topic, groupId: undefined, content, extensions: [] }));
    return new Promise((resolve, reject) =>
      this.#calls.submitAll(this.#caller, calls, (outcome) => {
        if (outcome.status === "REFUSED") reject(outcome.error);
        else resolve(outcome.status === "SUCCESS" ? outcome.results.map(({ topic }) => topic) : outcome.status);
      }),
    );
  }

  async #subscribe(topic: string, subscriptionId: string | undefined): Promise<unknown> {
    const url = `http://${this.#name}/`;
    const call = { topic, groupId: undefined, url, format: "RESTful", secret: undefined } as const;
    const offset = this.#choose([undefined, "OFFSET_FIRST", ...this.#eventIds]);
    const id = await this.#calls.subscribe(this.#caller, { ...call, subscriptionId, offset });
    return subscriptionId === undefined ? id.length : id;
  }

  async #attach(key: string, will: string | undefined): Promise<unknown> {
    const content = Buffer.from(`will of ${this.#name}`);
    const call = { topic: will ?? "", groupId: undefined, content, extensions: [] };
    return this.#hold(key, {
      protocol: "MQTT",
      will: will === undefined ? undefined : { delayMs: 0, call, opensTopic: true, expiresAfterMs: undefined },
    });
  }

  #stream(key: string, texts: readonly string[]): Promise<unknown> {
    const stream = { filters: texts, acknowledges: true, offset: this.#choose([undefined, ...this.#eventIds]) };
    return this.#hold(key, { protocol: "STOMP", will: undefined, stream });
  }

  async #hold(key: string, request: Pick<Parameters<Broker["attach"]>[1], "protocol" | "will" | "stream">) {
    const peer = new RecordingPeer();
    const common = { groupId: undefined, isClean: false, windowMax: 100, expiryMs: 60_000, onConnected: () => {} };
    const attachment = await this.#calls.attach(this.#caller, { ...common, ...request, key }, peer);
    this.#held.set(key, { peer, attachment, seen: 0 });
    return [attachment.isPresent, attachment.session.filterCount, attachment.session.originFor("a") !== undefined];
  }

  async #filter(key: string, filter: string): Promise<unknown> {
    const held = this.#held.get(key)?.attachment;
    const sessionFilter: SessionFilter = {
      filter: filter as TopicFilter,
      qos: this.#choose([0, 1] as const),
      isNoLocal: false,
      isRetainAsPublished: true,
      retained: "always",
      identifier: 1,
    };
    if (held === undefined || filter === "" || filter === "a#") return "no filter"; // Gateways refuse malformed filters.
    if (this.#choose([true, true, false])) {
      const answers = await held.subscribe([sessionFilter]);
      return [answers.map(String), held.session.hasFilter(sessionFilter.filter)];
    }
    return held.unsubscribe([sessionFilter.filter]);
  }

  #leave(key: string): unknown {
    this.#held.get(key)?.attachment.detach({ expiryMs: 60_000, isRegular: false });
    return this.#held.delete(key);
  }

  /** Describes what the client's connections and callbacks received since the previous step. */
  #look(): string {
    const seen: string[] = [];
    for (const [key, held] of this.#held) {
      for (const { event, filters: matched, isRetained, ticket, qos } of held.peer.deliveries.slice(held.seen)) {
        const texts = matched.map((one) => one.filter).join(" ");
        seen.push(`${key} gets ${event.topic} ${event.sequence} ${qos} ${String(isRetained)} by ${texts}`);
        expect(Buffer.from(event.content).toString()).toContain(this.#name);
        if (ticket !== undefined) held.attachment.session.acknowledge(ticket);
      }
      held.seen = held.peer.deliveries.length;
      if (held.peer.endedBecause !== undefined) seen.push(`${key} ended: ${held.peer.endedBecause}`);
    }
    const attempts = this.#engine.sink.attempts.filter(({ subscription: { url } }) => url.includes(this.#name));
    for (const { subscription, event } of attempts.slice(this.#attemptsSeen)) {
      expect(Buffer.from(event.content).toString()).toContain(this.#name);
      const isChosen = ids.includes(toClientsId(subscription.id));
      seen.push(`called ${isChosen ? toClientsId(subscription.id) : "back"} ${event.topic} ${event.sequence}`);
    }
    this.#attemptsSeen = attempts.length;
    // The order of calls by several workers is not guaranteed.
    return seen.length === 0 ? "" : `; ${seen.toSorted().join(", ")}`;
  }
}

const steps = [
  ...(["open", "open", "publish", "publish", "publish", "transaction", "close", "exist", "state", "list"] as const),
  ...(["getEvent", "subscribe", "unSubscribe", "attach", "attach", "stream", "filters", "filters", "leave"] as const),
] as const;

function credentialOf(tenant: Tenant): string {
  return formatKeyCredential({ id: String(tenants.indexOf(tenant)).repeat(16), secret });
}

/** Runs the same script for each of the clients, step by step in turn, and returns what each of them saw. */
async function run(clients: readonly Tenant[], seed: number, count: number): Promise<readonly (readonly string[])[]> {
  const apiKeys = new MemoryApiKeys();
  for (const [index, tenant] of tenants.entries()) {
    const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
    const own = { principal: "shop", tenant, roles: ["client"] };
    await apiKeys.insertApiKey({ id: String(index).repeat(16), digest: sha256(secret), ...own, ...times }, 10);
  }
  const engine = await TestEngine.start({ keys: { apiKeys, roles: new Map([["client", rules]]), sha256 } });
  try {
    const all = clients.map((tenant) => new Client(engine, tenant, seed));
    for (let step = 0; step < count; step += 1) for (const client of all) await client.step();
    return all.map(({ trace }) => trace);
  } finally {
    await engine.stop();
  }
}

/** A trace without the names in contents. */
function unnamed(trace: readonly string[]): readonly string[] {
  return trace.map((line) => line.replaceAll(/(by|of) (acme|share|undefined)"/g, '$1 somebody"'));
}

it.each([1, 2, 3, 4, 5, 6, 7, 8])(
  "two tenants that make the same calls each see what a lone client without a tenant sees (seed %i)",
  async (seed) => {
    const count = 250;
    const [[alone = []], [acme = [], share = []]] = [
      await run([undefined], seed, count),
      await run(["acme", "share"], seed, count),
    ];
    expect(unnamed(acme)).toEqual(unnamed(alone));
    expect(unnamed(share)).toEqual(unnamed(alone));
    expect(alone.filter((line) => line.includes("gets")).length).toBeGreaterThan(5);
  },
);
