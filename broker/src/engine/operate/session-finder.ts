import type { SessionId } from "../../ports/session-store.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { Store } from "../../ports/store.ts";
import type { SessionEntriesOptions } from "../query/session-entries.ts";
import type { Page, PageCall, SessionView } from "./calls.ts";
import { checkText } from "./check-text.ts";

export interface SessionFinderOptions {
  readonly store: Pick<Store, "sessions">;
  readonly sessions: SessionEntriesOptions["sessions"];
  readonly nodes: { readonly coordinator: Pick<Coordinator, "listNodes"> } | undefined;
}

/** Lists the sessions of MQTT and STOMP: those in the store, and those that live with their connection to this node. */
export class SessionFinder {
  readonly #options: SessionFinderOptions;

  constructor(options: SessionFinderOptions) {
    this.#options = options;
  }

  /** In the order of their identifiers. @throws BrokerError 200001. */
  async list({ after, limit }: PageCall): Promise<Page<SessionView>> {
    checkText({ cursor: after });
    const { store, sessions, nodes } = this.#options;
    const last = after as SessionId | undefined; // Compared as a text.
    const listed = await store.sessions.listSessions({ after: last, limit });
    const members = (await nodes?.coordinator.listNodes()) ?? [];
    const addresses = new Map<NodeId | undefined, string>(members.map(({ id, address }) => [id, address]));
    const known = new Map(sessions.listConnected().map((one) => [one.session.id, one]));
    const stored = listed.map(({ session, filters }): SessionView => {
      const isConnected = session.detachedAt === undefined;
      const isSuspended = session.protocol === "STOMP" && sessions.isSuspended(session);
      const standing = known.get(session.id);
      const current = standing?.session.epoch === session.epoch ? standing : { session, filters, isSuspended };
      return { ...pick(current), isConnected, node: addresses.get(session.owner) };
    });
    const own = [...known.values()]
      .filter((one) => !one.isStored && one.session.id > (after ?? ""))
      .map((one): SessionView => ({ ...pick(one), isConnected: true, node: addresses.get(one.session.owner) }));
    const all = [...stored, ...own].toSorted((left, right) => (left.session.id < right.session.id ? -1 : 1));
    const items = all.slice(0, limit);
    return { items, next: items.length === limit ? items.at(-1)?.session.id : undefined };
  }
}

function pick({ session, filters, isSuspended }: Pick<SessionView, "session" | "filters" | "isSuspended">) {
  return { session, filters, isSuspended };
}
