import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { type Connected, toConnectedSession } from "./connected.ts";

it("lists a session without encoding its events in flight or copying its filters: a listing visits every session of a node", () => {
  let copies = 0;
  const session = {
    key: { id: "one", epoch: 2 },
    cursor: 7,
    isStored: false,
    isSuspended: false,
    get state() {
      return expect.fail("a read of the state encodes the events in flight");
    },
    filterSet: {
      get all() {
        copies += 1;
        return [];
      },
    },
  };
  const group = { id: defaultGroupId };
  const known = { session, group, protocol: "MQTT", createdAt: 1, owner: undefined, ownedBy: "somebody" };
  const listed = toConnectedSession(known as unknown as Connected); // All fields that toConnectedSession reads.
  expect(listed.session).toMatchObject({ id: "one", epoch: 2, cursor: 7, principal: "somebody" });
  expect(copies).toBe(0);
  expect(listed.filters).toEqual([]);
});
