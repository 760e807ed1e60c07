import type { GroupId } from "./group-id.ts";
import type { NodeId } from "./node.ts";
import type { SubscriptionState } from "./subscription.ts";

/** A live member, and the groups that it can deliver. */
export interface Deliverer {
  readonly id: NodeId;
  readonly groups: readonly GroupId[];
}

/** How many callback subscriptions are alike in what the plan looks at. A node that is no live member counts as none. */
export interface SubscriptionCount {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly owner: NodeId | undefined;
  readonly wantedBy: NodeId | undefined;
  readonly count: number;
}

/** Subscriptions without an owner that a node is to be given. */
export interface Gift {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly to: NodeId;
  readonly count: number;
}

/** Active subscriptions, asked for by nobody yet, that a node is to be asked for. */
export interface Request {
  readonly groupId: GroupId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly count: number;
}

export interface BalancePlan {
  readonly gifts: readonly Gift[];
  readonly requests: readonly Request[];
}

/** How many subscriptions one plan gives and asks for, at most. */
export interface PlanLimits {
  readonly giftsMax: number;
  readonly requestsMax: number;
}

/**
 * Who is to have which of the callback subscriptions, within limits. Applied again and again, also while
 * what was asked for is still on its way, it ends with an empty plan, and then
 * - each group's active subscriptions are even within one over the members that deliver it; a group that none delivers stays as it is;
 * - each subscription without an owner has one, whatever its state; suspended ones are spread as evenly as that goes without moving any;
 * - none was taken from a node that had no more than its share, and so no fewer could have moved.
 * What is left over after even division stays where it is, or else goes to the member that has least in all. The same view gives the same plan.
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
  for (const lot of lots) {
    const deliverers = nodes.filter(({ groups }) => groups.includes(lot.groupId)).map(({ id }) => id);
    if (deliverers.length === 0) continue;
    const room = new Room(lot, sharesOf(lot, { deliverers, loads }));
    const given = giftsOf(lot, room, giftsMax - sumOf(gifts));
    const asked = lot.state === "active" ? requestsOf(lot, room, requestsMax - sumOf(requests)) : [];
    for (const { to, count } of [...given, ...asked]) loads.add(to, count);
    for (const { from, count } of asked) loads.add(from, -count);
    gifts.push(...given);
    requests.push(...asked);
  }
  return { gifts, requests };
}

/** Numbers by node; a node that has none has 0. */
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

/** The subscriptions of a group that are in one state. */
interface Lot {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly orphans: number;
  /** Of each owner, those that nobody asks for. */
  readonly settled: Tally;
  /** What each node has once those that are asked for are handed over. */
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

/** What each deliverer is to have in the end; the others are to have none. */
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

/** What the deliverers lack to their shares, and what the nodes have beyond. */
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

  /** Takes at most so many places, always of the one that lacks most, and answers how many of whom. */
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
