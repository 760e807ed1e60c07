import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import type { Attachment } from "../../engine/broker.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { Outbox } from "../shared/connection/outbox.ts";
import { Dialogue } from "./dialogue.ts";
import { createStandardProfile } from "./profile.ts";
import type { StompSettings } from "./settings.ts";

const settings: StompSettings = {
  extensionPrefix: "svc-",
  opensTopics: true,
  bodyBytesMax: 1_024,
  subscriptionsMax: 10,
  subscriptionExpirySeconds: 60,
  connectTimeoutMs: 10_000,
};

it("ends a subscription whose connection breaks while the broker creates it", async () => {
  const attaching = createDeferred<Attachment>();
  const replies: unknown[] = [];
  const dialogue = new Dialogue({
    broker: { attach: () => attaching.promise } as never, // A SUBSCRIBE makes no other call.
    caller: undefined as never, // Only the broker reads it.
    version: "1.2",
    profile: createStandardProfile({ hasImplicitReceipts: false, heartBeatMs: 0 }),
    settings,
    outbox: new Outbox(new PassThrough(), new UnreadBytes()),
    newId: () => "0a0a0a0a-1111-4222-8333-444444444444",
    reply: (headers) => replies.push(headers),
    refuse: (error) => replies.push(error),
    onSubscriptionEnded: () => {},
    onAnswered: () => {},
    leave: () => {},
  });
  const headers = Object.entries({ id: "1", destination: "a", receipt: "r" });
  const taken = dialogue.take({ command: "SUBSCRIBE", headers, body: Buffer.alloc(0) });
  dialogue.close();
  const detached: unknown[] = [];
  attaching.resolve({ detach: (how: unknown) => detached.push(how) } as never); // The end of a subscription uses nothing else.
  await taken;
  expect([detached, replies]).toEqual([[expect.objectContaining({ expiryMs: 0, isRegular: true })], []]);
});
