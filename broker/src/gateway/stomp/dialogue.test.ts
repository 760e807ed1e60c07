import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Attachment, TopicCall } from "../../engine/broker.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { Outbox } from "../shared/connection/outbox.ts";
import type { ClientCommand } from "./codec/frame.ts";
import { Dialogue } from "./dialogue.ts";
import type { StompSettings } from "./settings.ts";

const settings: StompSettings = {
  extensionPrefix: "svc-",
  opensTopics: true,
  bodyBytesMax: 1_024,
  subscriptionsMax: 10,
  subscriptionExpirySeconds: 60,
  connectTimeoutMs: 10_000,
  heartBeatMs: 0,
  hasImplicitReceipts: false,
};

/** The dialogue of a STOMP 1.2 client with a broker that has only the given calls. Adds each reply and refusal to `replies`. */
function createDialogue(broker: object, replies: unknown[] = []): Dialogue {
  return new Dialogue({
    broker: broker as never, // The test makes no other call.
    caller: undefined as never, // Only the broker reads it.
    version: "1.2",
    settings,
    outbox: new Outbox(new PassThrough(), new UnreadBytes()),
    newId: () => "0a0a0a0a-1111-4222-8333-444444444444",
    reply: (headers) => replies.push(headers),
    refuse: (error) => replies.push(error),
    onSubscriptionEnded: () => {},
    onAnswered: () => {},
    leave: () => {},
  });
}

function take(dialogue: Dialogue, command: ClientCommand, headers: Record<string, string>): Promise<void> | undefined {
  return dialogue.take({ command, headers: Object.entries(headers), body: Buffer.alloc(0) });
}

it("ends a subscription whose connection breaks while the broker creates it", async () => {
  const attaching = createDeferred<Attachment>();
  const replies: unknown[] = [];
  const dialogue = createDialogue({ attach: () => attaching.promise }, replies);
  const taken = take(dialogue, "SUBSCRIBE", { id: "1", destination: "a", receipt: "r" });
  dialogue.close();
  const detached: unknown[] = [];
  attaching.resolve({ detach: (how: unknown) => detached.push(how) } as never); // The end of a subscription uses nothing else.
  await taken;
  expect([detached, replies]).toEqual([[expect.objectContaining({ expiryMs: 0, isRegular: true })], []]);
});

it("opens no further topic of a transaction once its connection has ended", async () => {
  const opening = createDeferred<boolean>();
  const opened: string[] = [];
  const open = (_: unknown, { topic }: TopicCall): Promise<boolean> => {
    opened.push(topic);
    return opening.promise;
  };
  const dialogue = createDialogue({ exist: async () => false, open });
  void take(dialogue, "BEGIN", { transaction: "t" });
  for (const destination of ["a", "b"]) void take(dialogue, "SEND", { transaction: "t", destination });
  const committed = take(dialogue, "COMMIT", { transaction: "t" });
  await turn();
  dialogue.close();
  await committed;
  opening.resolve(true);
  await turn();
  expect(opened).toEqual(["a"]);
});
