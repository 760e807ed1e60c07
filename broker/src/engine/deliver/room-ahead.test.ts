import { expect, it } from "vitest";
import { neverAborted } from "../../lib/cancellation.ts";
import { bytesAheadMax, bytesAheadTotalMax, RoomAhead, SharedRoom } from "./room-ahead.ts";

const workersMax = 1_000;

/** As many workers as may hang at one receiver, each with events to take. */
function createRooms(shared: SharedRoom): readonly RoomAhead[] {
  const options = { shared, countAhead: () => 0, stopping: neverAborted };
  return Array.from({ length: workersMax }, () => new RoomAhead(options));
}

function fill(room: RoomAhead, bytes: number): number {
  let taken = 0;
  for (; !room.isFull; taken += bytes) room.take(bytes);
  return taken;
}

it("lets few workers take bytesAheadMax each, and many together not more than twice bytesAheadTotalMax", () => {
  const shared = new SharedRoom();
  const taken = createRooms(shared).map((room) => fill(room, 1_024));
  expect(taken[0]).toBe(bytesAheadMax);
  expect(taken.at(-1)).toBeGreaterThanOrEqual(bytesAheadTotalMax / workersMax);
  expect(shared.bytes).toBeLessThanOrEqual(2 * bytesAheadTotalMax);
});

it("lets a worker without events take one of any size when the others have taken all room, and no second one", () => {
  const rooms = createRooms(new SharedRoom());
  const taken = rooms.map((room) => fill(room, 1_024));
  rooms.at(-1)?.free(taken.at(-1) ?? 0);
  expect(rooms.at(-1)?.isFull).toBe(false);
  rooms.at(-1)?.take(bytesAheadMax / 2);
  expect(rooms.at(-1)?.isFull).toBe(true);
});

it("has its whole room again when the workers have ended", () => {
  const shared = new SharedRoom();
  const rooms = createRooms(shared);
  for (const room of rooms) fill(room, 1_024);
  for (const room of rooms) room.close();
  expect([shared.bytes, shared.workers]).toEqual([0, 0]);
});
