import { describe, expect, it } from "vitest";
import { unaborted } from "../../lib/cancellation.ts";
import { bytesAheadMax, bytesAheadTotalMax, RoomAhead, SharedRoom } from "./room-ahead.ts";

const workersMax = 1_000;
const eventBytes = 1_024;

function createRoom(shared: SharedRoom, countAhead = () => 0): RoomAhead {
  return new RoomAhead({ shared, countAhead, stopping: unaborted });
}

/** As many workers as may hang at one receiver, each with events to take. */
function createRooms(shared: SharedRoom): readonly RoomAhead[] {
  return Array.from({ length: workersMax }, () => createRoom(shared));
}

function fill(room: RoomAhead, bytes = eventBytes): number {
  let taken = 0;
  for (; !room.isFull; taken += bytes) room.take(bytes);
  return taken;
}

/** Lets each room take one event after another in turn, until all are full. */
function fillInTurn(rooms: readonly RoomAhead[]): void {
  for (let open = rooms; open.length > 0; open = open.filter(({ isFull }) => !isFull)) {
    for (const room of open) room.take(eventBytes);
  }
}

/** Returns a function that tells whether the wait of a room has ended. */
function waitOf(room: RoomAhead | undefined): () => Promise<boolean> {
  let hasEnded = false;
  void room?.wait().then(() => (hasEnded = true));
  return async () => {
    await new Promise(setImmediate);
    return hasEnded;
  };
}

describe("the room of workers", () => {
  it("is bytesAheadMax for each if they are few, and its share for each of many", () => {
    const taken = createRooms(new SharedRoom()).map((room) => fill(room));
    expect(taken[0]).toBe(bytesAheadMax);
    expect(taken.at(-1)).toBeGreaterThanOrEqual(bytesAheadTotalMax / workersMax);
  });

  it("is twice bytesAheadTotalMax if a thousand take their events in turn", () => {
    const shared = new SharedRoom();
    fillInTurn(createRooms(shared));
    expect(shared.bytes).toBeLessThanOrEqual(2 * bytesAheadTotalMax);
  });

  it("is four times bytesAheadTotalMax if a thousand take all their events one after another", () => {
    const shared = new SharedRoom();
    for (const room of createRooms(shared)) fill(room);
    expect(shared.bytes).toBeLessThanOrEqual(4 * bytesAheadTotalMax);
  });

  it("is for one event of any size, and no second one, if a worker has none and the others have taken all", () => {
    const rooms = createRooms(new SharedRoom());
    const taken = rooms.map((room) => fill(room));
    rooms.at(-1)?.free(taken.at(-1) ?? 0);
    expect(rooms.at(-1)?.isFull).toBe(false);
    rooms.at(-1)?.take(bytesAheadMax / 2);
    expect(rooms.at(-1)?.isFull).toBe(true);
  });

  it("is not shared with workers that hold no events", () => {
    const shared = new SharedRoom();
    const [first] = createRooms(shared);
    first?.take(bytesAheadTotalMax);
    expect(fill(createRoom(shared))).toBe(bytesAheadMax);
  });

  it("is whole again when the workers have ended", () => {
    const shared = new SharedRoom();
    const rooms = createRooms(shared);
    for (const room of rooms) fill(room);
    for (const room of rooms) room.close();
    expect(shared.bytes).toBe(0);
    expect(fill(createRoom(shared))).toBe(bytesAheadMax);
  });
});

describe("a worker that waits for its share", () => {
  it("goes on when another one has freed the shared room", async () => {
    const [large, ...rooms] = createRooms(new SharedRoom());
    large?.take(bytesAheadTotalMax);
    for (const room of rooms) room.take(bytesAheadTotalMax / workersMax);
    const hasEnded = waitOf(rooms[0]);
    large?.free(bytesAheadTotalMax / 2);
    expect(await hasEnded()).toBe(false);
    large?.free(bytesAheadTotalMax / 2 - eventBytes);
    expect(await hasEnded()).toBe(true);
  });

  it("goes on when others have ended, so that its share has grown", async () => {
    const [large, waiting, ...rooms] = createRooms(new SharedRoom());
    large?.take(bytesAheadTotalMax);
    waiting?.take(bytesAheadMax / 2);
    for (const room of rooms) room.take(eventBytes);
    const hasEnded = waitOf(waiting);
    for (const room of rooms.slice(200)) room.close();
    expect(await hasEnded()).toBe(false);
    for (const room of rooms.slice(100, 200)) room.close();
    expect(await hasEnded()).toBe(true);
  });

  it("is not looked at for each event of a worker that works", () => {
    const shared = new SharedRoom();
    const [large, working, ...rooms] = createRooms(shared);
    large?.take(bytesAheadTotalMax);
    for (const room of rooms) room.take(eventBytes);
    let looks = 0;
    const waiting = createRoom(shared, () => ((looks += 1), 0));
    waiting.take(bytesAheadMax / 2);
    void waiting.wait();
    looks = 0;
    for (let events = 0; events < 100; events += 1) {
      working?.take(eventBytes);
      working?.free(eventBytes);
    }
    expect(looks).toBe(0);
  });
});
