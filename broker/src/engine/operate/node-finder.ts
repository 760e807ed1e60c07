import type { ClusterNode, NodeId } from "../../domain/node.ts";
import { BriefCache } from "../../lib/brief-cache.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, GroupLease } from "../../ports/coordinator.ts";
import type { OwnedCount, Store } from "../../ports/store.ts";
import type { NodeHealth } from "../broker.ts";
import type { Groups } from "../group.ts";
import type { MemberHistory } from "../member-history.ts";
import type { SessionEntriesOptions } from "../query/session-entries.ts";
import type { NodePage, NodeView, PageCall } from "./calls.ts";

/** How long counts of subscriptions and sessions are cached, in milliseconds. */
const countsAgeMsMax = 5_000;

export interface NodeFinderOptions {
  readonly store: Pick<Store, "countOwned">;
  readonly sessions: SessionEntriesOptions["sessions"];
  readonly clock: Clock;
  readonly groups: Groups;
  readonly nodeHealth: () => NodeHealth | undefined;
  /** Undefined for a single node, like `memberHistory`. */
  readonly nodes: { readonly coordinator: Pick<Coordinator, "listNodes" | "listLeases"> } | undefined;
  readonly memberHistory: Pick<MemberHistory, "list"> | undefined;
}

/** Leases, subscriptions and sessions of the nodes, according to the database. */
interface Held {
  readonly leases: readonly GroupLease[];
  readonly counts: readonly OwnedCount[];
}

/** Shows the nodes with their roles, and the newest membership changes. */
export class NodeFinder {
  readonly #options: NodeFinderOptions;
  readonly #counts: BriefCache<readonly OwnedCount[]>;

  constructor(options: NodeFinderOptions) {
    this.#options = options;
    const now = (): number => options.clock.monotonic();
    this.#counts = new BriefCache({ now, ageMsMax: countsAgeMsMax, entriesMax: 1 });
  }

  /** Lists the nodes, sorted by address. */
  async list({ after = "", limit }: PageCall): Promise<NodePage> {
    const { nodes, memberHistory } = this.#options;
    const history = memberHistory?.list() ?? [];
    if (nodes === undefined) return { items: after === "" ? [await this.#viewAlone()] : [], next: undefined, history };
    const left = (await nodes.coordinator.listNodes()).filter(({ address }) => address > after);
    const page = left.toSorted((one, other) => (one.address < other.address ? -1 : 1)).slice(0, limit);
    const held = { leases: await nodes.coordinator.listLeases(), counts: await this.#readCounts() };
    const next = page.length < left.length ? page.at(-1)?.address : undefined;
    return { items: page.map((node) => this.#view(node, held)), next, history };
  }

  #readCounts(): Promise<readonly OwnedCount[]> {
    return this.#counts.read("", () => this.#options.store.countOwned());
  }

  #view(node: ClusterNode, { leases, counts }: Held): NodeView {
    const isOwn = node.address === this.#options.nodeHealth()?.address;
    const follows = leases.filter(({ nodeId }) => nodeId === node.id).map(({ groupId }) => groupId);
    return { ...node, isOwn, roles: { follows, ...this.#countOf(node.id, { counts, isOwn }) } };
  }

  async #viewAlone(): Promise<NodeView> {
    const follows = this.#options.groups.all.map(({ id }) => id);
    const roles = { follows, ...this.#countOf(undefined, { counts: await this.#readCounts(), isOwn: true }) };
    return { id: undefined, address: undefined, joinedAt: undefined, isOwn: true, roles };
  }

  /** A node knows only its own sessions that are not stored, so it counts them for itself and not for other nodes. */
  #countOf(
    node: NodeId | undefined,
    { counts, isOwn }: Pick<Held, "counts"> & { readonly isOwn: boolean },
  ): Pick<OwnedCount, "subscriptions" | "sessions"> {
    const { subscriptions = 0, sessions = 0 } = counts.find(({ owner }) => owner === node) ?? {};
    const unstored = isOwn ? this.#options.sessions.listConnected().filter(({ isStored }) => !isStored).length : 0;
    return { subscriptions, sessions: sessions + unstored };
  }
}
