import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { positionZero } from "../../domain/position.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { SessionId } from "../../ports/session-store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { ConnectedSession } from "../connected-session.ts";
import { Groups } from "../group.ts";
import { SessionFinder } from "./session-finder.ts";

const connections = 1_000;
const limit = 10;

it("a page of sessions looks at the filters of the sessions on it, not at those of every connection", async () => {
  let looks = 0;
  const connected = Array.from({ length: connections }, (_, index): ConnectedSession => {
    const id = `00000000-0000-4000-8000-${String(connections - index).padStart(12, "0")}` as SessionId; // A UUID.
    const times = { createdAt: 0, owner: undefined, epoch: 1, cursor: positionZero };
    return {
      session: { id, groupId: defaultGroupId, protocol: "MQTT", principal: "somebody", ...times },
      get filters() {
        looks += 1;
        return [];
      },
      isStored: false,
      isSuspended: false,
      notifiedAt: () => undefined,
    };
  });
  const finder = new SessionFinder({
    store: createMemoryStore(),
    groups: new Groups([], defaultGroupId),
    clock: new VirtualClock(),
    sessions: { listConnected: () => connected, isSuspended: () => false },
    nodes: undefined,
  });
  const slices = { pause: () => undefined };
  const first = await finder.search({}, { after: undefined, limit, slices });
  const second = await finder.search({}, { after: first.next, limit, slices });
  const sorted = connected.map(({ session }) => session.id).toSorted();
  expect([...first.items, ...second.items].map(({ session }) => session.id)).toEqual(sorted.slice(0, 2 * limit));
  expect(looks).toBe(2 * limit);
});
