import type { GroupId } from "./group-id.ts";
import type { NodeId } from "./node.ts";
import type { SubscriptionState } from "./subscription.ts";

/** A live member, and the groups that it can deliver. */
export interface Deliverer {
  readonly id: NodeId;
  readonly groups: readonly GroupId[];
}

/** Number of callback subscriptions with the same group, state, owner and request. An owner that is not a live member counts as none. */
export interface SubscriptionCount {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly owner: NodeId | undefined;
  readonly wantedBy: NodeId | undefined;
  readonly count: number;
}

/** Subscriptions without a live owner that the plan assigns to a node. */
export interface Gift {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly to: NodeId;
  readonly count: number;
}

/** Active subscriptions, not requested yet, that the plan requests from their owner. */
export interface Request {
  readonly groupId: GroupId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly count: number;
}

export interface BalancePlan {
  readonly gifts: readonly Gift[];
  readonly requests: readonly Request[];
  /** Groups with active subscriptions that no member can deliver. */
  readonly unserved: readonly GroupId[];
}

/** Maximum number of subscriptions that one plan assigns and requests. */
export interface PlanLimits {
  readonly giftsMax: number;
  readonly requestsMax: number;
}

/** A node's count may differ from its target by this fraction: without tolerance, every new or ended subscription could move others. */
const tolerance = 1 / 64;

/**
 * Plans which node owns which callback subscription, within limits. The same view gives the same plan. Repeated plans converge to an empty plan, also while
 * handovers are in progress. Then
 * - the members that deliver a group have equal numbers of its active subscriptions, up to a difference of one, or of a 64th of their targets;
 * - a group that no member delivers is unchanged;
 * - every other subscription has an owner, whatever its state; suspended subscriptions are spread as evenly as possible, but none is moved;
 * - no node with at most its target has lost a subscription, so the number of moves is minimal. If the subscriptions do not divide evenly, the extra ones stay
 *   where they are, or go to the members with the fewest subscriptions in all.
 */
export function planBalance(
  view: { readonly nodes: readonly Deliverer[]; readonly counts: readonly SubscriptionCount[] },
  { giftsMax, requestsMax }: PlanLimits,
): BalancePlan {
  const nodes = view.nodes.toSorted((left, right) => compare(left.id, right.id));
  const lots = toLots(view.counts, new Set(nodes.map(({ id }) => id)));
  const loads = new Tally(nodes.map(({ id }) => id));
  for (const lot of lots) if (lot.state === "active") loads.addAll(lot.expected);
  const gifts: Gift[] = [];
  const requests: Request[] = [];
  const unserved: GroupId[] = [];
  for (const lot of lots) {
    const deliverers = nodes.filter(({ groups }) => groups.includes(lot.groupId)).map(({ id }) => id);
    if (deliverers.length === 0) {
      if (lot.state === "active") unserved.push(lot.groupId);
      continue;
    }
    const shares = sharesOf(lot, { deliverers, loads });
    const room = new Room(lot, shares);
    const given = giftsOf(lot, room, giftsMax - sumOf(gifts));
    const mayMove = lot.state === "active" && !isAlmostEven(lot, shares);
    const asked = mayMove ? requestsOf(lot, room, requestsMax - sumOf(requests)) : [];
    for (const { to, count } of [...given, ...asked]) loads.add(to, count);
    for (const { from, count } of asked) loads.add(from, -count);
    gifts.push(...given);
    requests.push(...asked);
  }
  return { gifts, requests, unserved };
}

/** Numbers by node; a missing node counts as 0. */
class Tally {
  readonly #counts: Map<NodeId, number>;

  constructor(nodes: readonly NodeId[] = []) {
    this.#counts = new Map(nodes.map((id) => [id, 0]));
  }

  get(node: NodeId): number {
    return this.#counts.get(node) ?? 0;
  }

  add(node: NodeId, count: number): void {
    this.#counts.set(node, this.get(node) + count);
  }

  addAll(other: Tally): void {
    for (const [node, count] of other.entries()) this.add(node, count);
  }

  entries(): readonly (readonly [NodeId, number])[] {
    return [...this.#counts];
  }

  total(): number {
    return this.entries().reduce((sum, [, count]) => sum + count, 0);
  }
}

/** The subscriptions of a group in one state. */
interface Lot {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly orphans: number;
  /** By owner, the number of subscriptions that nobody requested. */
  readonly settled: Tally;
  /** What each node will have once all requested handovers are complete. */
  readonly expected: Tally;
}

function toLots(counts: readonly SubscriptionCount[], live: ReadonlySet<NodeId>): readonly Lot[] {
  const isLive = (node: NodeId | undefined): node is NodeId => node !== undefined && live.has(node);
  const lots = new Map<string, Lot>();
  for (const { groupId, state, owner, wantedBy, count } of counts) {
    const key = `${groupId} ${state}`;
    const lot = lots.get(key) ?? { groupId, state, orphans: 0, settled: new Tally(), expected: new Tally() };
    lots.set(key, isLive(owner) ? lot : { ...lot, orphans: lot.orphans + count });
    if (!isLive(owner)) continue;
    if (!isLive(wantedBy)) lot.settled.add(owner, count);
    lot.expected.add(isLive(wantedBy) ? wantedBy : owner, count);
  }
  return [...lots].toSorted(([left], [right]) => compare(left, right)).map(([, lot]) => lot);
}

/** The target of each deliverer; all other nodes have target zero. */
function sharesOf(
  { expected, orphans }: Lot,
  { deliverers, loads }: { readonly deliverers: readonly NodeId[]; readonly loads: Tally },
): Tally {
  const total = expected.total() + orphans;
  const share = Math.floor(total / deliverers.length);
  const shares = new Tally();
  const order = deliverers.toSorted(
    (left, right) => expected.get(right) - expected.get(left) || loads.get(left) - loads.get(right),
  );
  for (const [place, node] of order.entries()) {
    shares.add(node, place < total % deliverers.length ? share + 1 : share);
  }
  return shares;
}

function isAlmostEven({ expected }: Lot, shares: Tally): boolean {
  const nodes = new Set([...expected.entries(), ...shares.entries()].map(([node]) => node));
  return [...nodes].every((node) => {
    const share = shares.get(node);
    return Math.abs(expected.get(node) - share) <= Math.floor(share * tolerance);
  });
}

/** How many subscriptions each deliverer lacks, and how many each node has too many. */
class Room {
  readonly #lacking: Tally;
  readonly surplus: readonly (readonly [NodeId, number])[];

  constructor({ expected, settled }: Lot, shares: Tally) {
    this.#lacking = new Tally();
    for (const [node, share] of shares.entries()) this.#lacking.add(node, Math.max(0, share - expected.get(node)));
    this.surplus = settled
      .entries()
      .map(([node, count]) => [node, Math.min(count, expected.get(node) - shares.get(node))] as const)
      .filter(([, count]) => count > 0)
      .toSorted(([left], [right]) => compare(left, right));
  }

  /** Takes up to `countMax` places, each from the node that lacks most. Returns how many it took from each node. */
  take(countMax: number): readonly { readonly to: NodeId; readonly count: number }[] {
    const taken = new Tally();
    for (let count = 0; count < countMax; count += 1) {
      const [node, lacks] = this.#lacking.entries().reduce((most, next) => (next[1] > most[1] ? next : most));
      if (lacks === 0) break;
      this.#lacking.add(node, -1);
      taken.add(node, 1);
    }
    return taken.entries().map(([to, count]) => ({ to, count }));
  }
}

function giftsOf({ groupId, state, orphans }: Lot, room: Room, countMax: number): readonly Gift[] {
  return room.take(Math.min(orphans, countMax)).map(({ to, count }) => ({ groupId, state, to, count }));
}

function requestsOf({ groupId }: Lot, room: Room, countMax: number): readonly Request[] {
  const requests: Request[] = [];
  for (const [from, count] of room.surplus) {
    const places = room.take(Math.min(count, countMax - sumOf(requests)));
    requests.push(...places.map((place) => ({ groupId, from, ...place })));
  }
  return requests;
}

function sumOf(moves: readonly { readonly count: number }[]): number {
  return moves.reduce((sum, { count }) => sum + count, 0);
}

function compare(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1;
}
