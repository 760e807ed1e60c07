import { describe, expect, test } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome, Notification, Sink } from "../../ports/sink.ts";
import { notificationTo } from "./testing/notification.ts";
import { type Receiver, startReceiver } from "./testing/receiver.ts";
import { makeSink, unaborted } from "./testing/sink.ts";

const accepted: AttemptOutcome = { status: "accepted" };
const withheld: AttemptOutcome = { status: "withheld" };

/** A receiver that holds back every answer, except at `/free`, until `release`. */
async function startHanging(): Promise<{ receiver: Receiver; isReached: Promise<void>; release: () => void }> {
  const reached = createDeferred<void>();
  const released = createDeferred<void>();
  const receiver = await startReceiver((response, { path }) => {
    reached.resolve();
    if (path === "/free") response.end();
    else void released.promise.then(() => response.end());
  });
  return { receiver, isReached: reached.promise, release: () => released.resolve() };
}

const at = (receiver: Receiver, path: string): Notification =>
  notificationTo({ url: receiver.url.replace("/hook", path) });

const pathsOf = ({ requests }: Receiver): readonly (string | undefined)[] => requests.map(({ path }) => path);

describe("an attempt that waits for a connection", () => {
  test("is not sent after permission is withdrawn, and uses no connection", async () => {
    const { receiver, isReached, release } = await startHanging();
    await using _ = receiver;
    const sink = makeSink({ connectionsMax: 1 });
    let mayStart = true;
    const first = sink.attempt(at(receiver, "/first"), unaborted, { mayStart: () => mayStart });
    const waiting = Array.from({ length: 5 }, () =>
      sink.attempt(at(receiver, "/waiting"), unaborted, { mayStart: () => mayStart }),
    );
    await isReached;
    mayStart = false;
    release();
    expect(await first).toEqual(accepted);
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => withheld));
    expect(await sink.attempt(at(receiver, "/free"), unaborted)).toEqual(accepted);
    expect(pathsOf(receiver)).toEqual(["/first", "/free"]);
    expect(receiver.connectionCount()).toBe(1);
  });

  test("is not sent after its signal has aborted, and uses no connection", async () => {
    const { receiver, isReached, release } = await startHanging();
    await using _ = receiver;
    const sink = makeSink({ connectionsMax: 1 });
    const aborting = new AbortController();
    const first = sink.attempt(at(receiver, "/first"), unaborted);
    const waiting = Array.from({ length: 5 }, () => sink.attempt(at(receiver, "/waiting"), aborting.signal));
    await isReached;
    aborting.abort();
    expect(await Promise.all(waiting)).toMatchObject(waiting.map(() => ({ status: "failed" })));
    release();
    expect(await first).toEqual(accepted);
    expect(await sink.attempt(at(receiver, "/free"), unaborted)).toEqual(accepted);
    expect(pathsOf(receiver)).toEqual(["/first", "/free"]);
    expect(receiver.connectionCount()).toBe(1);
  });
});

const targetAt = (url: string): Notification["subscription"] => notificationTo({ url }).subscription;

describe("the slots of a receiver", () => {
  test("are twice its connections, over all its urls; a slot that an attempt leaves goes to the next", async () => {
    const sink = makeSink({ connectionsMax: 2 });
    const slots = ["/a", "/b", "/c", "/d"].map((path) => sink.enter(targetAt(`http://one.test${path}`), unaborted));
    expect(slots.every((slot) => slot !== undefined && !(slot instanceof Promise))).toBe(true);
    const waiting = sink.enter(targetAt("http://one.test/e"), unaborted);
    expect(waiting).toBeInstanceOf(Promise);
    expect(sink.enter(targetAt("http://two.test/"), unaborted)).not.toBeInstanceOf(Promise);
    (await slots[0])?.leave();
    expect(await waiting).toBeDefined();
  });

  test("are not needed for a url that cannot be called", () => {
    expect(makeSink().enter(targetAt("nowhere"), unaborted)).toBeUndefined();
  });
});

describe("an attempt whose permission is withdrawn while it waits", () => {
  test("is not sent on an open idle connection", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const sink = makeSink();
    expect(await sink.attempt(at(receiver, "/first"), unaborted)).toEqual(accepted);
    expect(await attemptAndDeny(sink, at(receiver, "/second"), Promise.resolve())).toEqual(withheld);
    expect(pathsOf(receiver)).toEqual(["/first"]);
  });

  test("is not sent if the permission is withdrawn while the name is resolved", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const asked = createDeferred<void>();
    const resolver = async (): Promise<readonly string[]> => {
      asked.resolve();
      return ["127.0.0.1"];
    };
    const notification = notificationTo({ url: `http://receiver.test:${receiver.port}/` });
    const sink = makeSink({ resolver });
    expect(await attemptAndDeny(sink, notification, asked.promise)).toEqual(withheld);
    expect(await sink.attempt(notification, unaborted, { mayStart: () => true })).toEqual(accepted);
    expect(pathsOf(receiver)).toEqual(["/"]);
  });
});

/** Attempts a notification, and denies permission once `until` resolves. */
async function attemptAndDeny(sink: Sink, notification: Notification, until: Promise<void>): Promise<AttemptOutcome> {
  let mayStart = true;
  const attempt = sink.attempt(notification, unaborted, { mayStart: () => mayStart });
  await until;
  mayStart = false;
  return attempt;
}
