import type { Randomness } from "../../../ports/randomness.ts";
import type { Access } from "../../access/access.ts";
import type { Caller } from "../../access/caller.ts";
import type { Attachment, ConnectedSession, StartPosition, TailCall, TailStart } from "../../broker.ts";
import type { Group, Groups } from "../../group.ts";
import type { Peer, TailSession } from "../peer.ts";
import type { Sessions } from "../sessions.ts";
import { findTailStart, type TailStartParts, withPlace } from "./tail-start.ts";

export interface TailsParts extends TailStartParts {
  readonly sessions: Pick<Sessions, "attach">;
  readonly groups: Groups;
  readonly randomness: Randomness;
  readonly access: Pick<Access, "finderFor">;
}

/** Sessions that last as long as a request. The client remembers its place, so each tail begins where its client says. */
export class Tails {
  readonly #parts: TailsParts;

  constructor(parts: TailsParts) {
    this.#parts = parts;
  }

  /** @throws what {@link Sessions.attach} throws for a stream, and BrokerError 100300 to 100304 and 200205 for the start. */
  async open(caller: Caller, asked: TailCall, peer: Peer): Promise<Attachment> {
    const { sessions, groups, randomness, access } = this.#parts;
    const group = groups.get(asked.groupId);
    const call = await withPlace(group, asked, caller.signal);
    const mayFind = access.finderFor(caller);
    let start: (TailStart & StartPosition) | undefined;
    const findStart = async (): Promise<StartPosition> => {
      start = await findTailStart(this.#parts, group, { ...call, mayFind });
      return start;
    };
    return sessions.attach(
      caller,
      {
        groupId: group.id,
        protocol: "Tail",
        key: randomness.uuid(),
        isClean: true,
        windowMax: 1, // Nothing is acknowledged, so nothing is in the window.
        will: undefined,
        expiryMs: 0,
        onConnected: ({ session }) => {
          if (start === undefined) throw new Error("a tail began without a start");
          call.onConnected(toTailSession(session, group), start, group.origins.createReader());
        },
        stream: { filters: call.filters, acknowledges: false, offset: undefined, findStart },
      },
      peer,
    );
  }
}

/** A tail that keeps up reads nothing itself. If nodes share the store, it is also stuck while this node cannot read the index. */
function toTailSession(session: ConnectedSession, { indexHealth }: Group): TailSession {
  return {
    wake: () => session.wake(),
    get isStuck() {
      return session.isStuck || indexHealth.isStoreAway;
    },
  };
}
