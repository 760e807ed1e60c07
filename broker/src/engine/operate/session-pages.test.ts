import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { positionZero } from "../../domain/position.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { SessionId } from "../../ports/session-store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { ConnectedSession } from "../connected-session.ts";
import { Groups } from "../group.ts";
import { SessionFinder } from "./session-finder.ts";

const connections = 1_000;
const limit = 10;

const slices = { pause: () => undefined };

/** A finder for connections that exist only at this node. */
function createFinder(connected: readonly ConnectedSession[]): SessionFinder {
  return new SessionFinder({
    store: createMemoryStore(),
    groups: new Groups([], defaultGroupId),
    clock: new VirtualClock(),
    sessions: { listConnected: () => connected, isSuspended: () => false },
    nodes: undefined,
  });
}

/** A connection with the number of filters that `countFilters` returns when somebody looks at them. */
function connect(number: number, countFilters: () => number): ConnectedSession {
  const id = `00000000-0000-4000-8000-${String(number).padStart(12, "0")}` as SessionId; // A UUID.
  const times = { createdAt: 0, owner: undefined, epoch: 1, cursor: positionZero };
  const filter = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const own = { ...filter, id: parseSubscriptionId(id), startsAfter: positionZero };
  return {
    session: { id, groupId: defaultGroupId, protocol: "MQTT", principal: "somebody", ...times },
    get filters() {
      return Array.from({ length: countFilters() }, (_, index) => ({ ...own, filter: parseTopicFilter(`${index}`) }));
    },
    isStored: false,
    isSuspended: false,
    notifiedAt: () => undefined,
  };
}

it("a page of sessions reads the filters of its own sessions, not those of every connection", async () => {
  let looks = 0;
  const connected = Array.from({ length: connections }, (_, index) =>
    connect(connections - index, () => {
      looks += 1;
      return 0;
    }),
  );
  const finder = createFinder(connected);
  const first = await finder.search({}, { after: undefined, limit, slices });
  const second = await finder.search({}, { after: first.next, limit, slices });
  const sorted = connected.map(({ session }) => session.id).toSorted();
  expect([...first.items, ...second.items].map(({ session }) => session.id)).toEqual(sorted.slice(0, 2 * limit));
  expect(looks).toBe(2 * limit);
});

it("a page ends early when its sessions have thousands of filters, and the pages together list every session", async () => {
  const connected = Array.from({ length: 25 }, (_, index) => connect(index, () => 1_000));
  const finder = createFinder(connected);
  const pages: (readonly string[])[] = [];
  for (let after: string | undefined; ; ) {
    const { items, next } = await finder.search({}, { after, limit: 500, slices });
    pages.push(items.map(({ session }) => session.id));
    after = next;
    if (next === undefined) break;
  }
  expect(pages.map(({ length }) => length)).toEqual([10, 10, 5]);
  expect(pages.flat()).toEqual(connected.map(({ session }) => session.id));
});
