import { connect, type IConnackPacket } from "mqtt";
import { until } from "../../harness/until.ts";
import type { Acknowledged } from "./acknowledged.ts";
import { Wrong } from "./reading.ts";

/** Clients that keep their sessions: one subscribes to a filter, the other is the only member of a share. */
const sessions = [
  { clientId: "damage-session", filter: "damage/#" },
  { clientId: "damage-member", filter: "$share/damage/damage/#" },
] as const;

interface Received {
  readonly topic: string;
  readonly content: string;
  readonly isRetained: boolean;
}

/** Subscribes as each client and disconnects. The broker keeps later events for these sessions. */
export async function leaveSessions(port: number): Promise<void> {
  for (const { clientId, filter } of sessions) {
    const { client } = await connectClient(port, { clientId, isKept: true });
    await client.subscribeAsync(filter, { qos: 1 });
    await client.endAsync();
  }
}

export interface SessionsExpected {
  /** Events that each session must receive. */
  readonly held: readonly Acknowledged[];
  /** Topic by content, of all events that may arrive. */
  readonly topicOf: ReadonlyMap<string, string>;
  /** The retained event; undefined if it may be lost. */
  readonly retained: Acknowledged | undefined;
  /** Whether the broker may have forgotten a session. */
  readonly mayForget: () => boolean;
  /** Throws if the broker is not ready. */
  readonly expectReady: () => Promise<void>;
}

/**
 * Reconnects as each client.
 *
 * @throws Wrong if a session lacks an event, or is gone without an excuse, if an event comes that nobody sent to its topic, or if a topic retains another event
 */
export async function expectSessions(port: number, expected: SessionsExpected): Promise<void> {
  for (const { clientId } of sessions) await expectSession(port, clientId, expected);
  if (expected.retained !== undefined) await expectRetained(port, expected.retained, expected);
}

async function expectSession(port: number, clientId: string, expected: SessionsExpected): Promise<void> {
  const received: Received[] = [];
  const { client, isPresent } = await connectClient(port, { clientId, isKept: true, received });
  try {
    if (!isPresent) {
      if (!expected.mayForget()) throw new Wrong(`the session of ${clientId} is gone, and the log does not mention it`);
      return;
    }
    const missing = (): Acknowledged | undefined => {
      const contents = new Set(received.map(({ content }) => content));
      return expected.held.find(({ content }) => !contents.has(content));
    };
    await until(`${clientId} receives every event, or the broker is not ready`, async () => {
      if (missing() === undefined) return true;
      await expected.expectReady();
      return false;
    }).catch((error: unknown) => {
      throw error instanceof Error && /timeout/.test(error.message)
        ? new Wrong(`${clientId} did not receive ${JSON.stringify(missing())}`)
        : error;
    });
    for (const { topic, content } of received) {
      if (expected.topicOf.get(content) !== topic) throw new Wrong(`nobody sent ${content} to ${topic}`);
    }
  } finally {
    await client.endAsync(true);
  }
}

async function expectRetained(port: number, { topic, content }: Acknowledged, expected: SessionsExpected) {
  const received: Received[] = [];
  const { client } = await connectClient(port, { clientId: "damage-fresh", isKept: false, received });
  try {
    await client.subscribeAsync(topic, { qos: 1 });
    const find = (): Received | undefined => received.find(({ isRetained }) => isRetained);
    await until(`the retained event of ${topic} comes, or the broker is not ready`, async () => {
      if (find() !== undefined) return true;
      await expected.expectReady();
      return false;
    });
    if (find()?.content !== content) throw new Wrong(`${topic} retains ${find()?.content}, not ${content}`);
  } finally {
    await client.endAsync(true);
  }
}

interface ConnectOptions {
  readonly clientId: string;
  readonly isKept: boolean;
  readonly received?: Received[];
}

/** Connects a client. Adds the message listener before it waits for CONNACK, because the broker sends the session's messages right after CONNACK. */
async function connectClient(port: number, { clientId, isKept, received }: ConnectOptions) {
  const properties = { sessionExpiryInterval: isKept ? 1_000_000 : 0 };
  const options = { clientId, clean: !isKept, reconnectPeriod: 0, protocolVersion: 5, properties } as const;
  const client = connect(`mqtt://127.0.0.1:${port}`, options);
  client.on("message", (topic, payload, { retain }) => {
    received?.push({ topic, content: payload.toString(), isRetained: retain });
  });
  const { sessionPresent } = await new Promise<IConnackPacket>((resolve, reject) => {
    client.once("connect", resolve).once("error", reject);
  });
  return { client, isPresent: sessionPresent };
}
