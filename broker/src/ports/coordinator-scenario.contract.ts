import { expect } from "vitest";
import type { GroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Store } from "./store.ts";
import { group, otherGroup, subscriptionOf } from "./store-examples.contract.ts";

/** A started store, and coordinators of the nodes that share it. */
export interface CoordinatorFixture {
  readonly store: Store;
  /** The coordinators of two nodes. */
  readonly coordinators: readonly [Coordinator, Coordinator];
  /** Inserts subscriptions with the given owner and epoch. */
  insert(subscriptions: readonly Subscription[]): Promise<void>;
  /** Advances the coordinator's clock. */
  elapse(durationMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Duration of memberships, in milliseconds: the longest that a setting allows. */
export const lastsMs = 600_000;
/** A test checks that a membership still lasts this many milliseconds before its end. Long, because a database's clock advances during the calls. */
export const nearEndMs = 60_000;
export const both = [group, otherGroup];
export const noMember = expect.objectContaining({ name: "BrokerError", code: 200207 });

/** A membership identifier that ends in the number. */
export function nodeIdOf(number: number): NodeId {
  return `00000000-0000-4000-9000-${number.toString(16).padStart(12, "0")}` as NodeId;
}

export const a = nodeIdOf(1);
export const b = nodeIdOf(2);
export const c = nodeIdOf(3);

export function addressOf(id: NodeId): string {
  return `${id.slice(-1)}.example:8080`;
}

/** A fixture for each test, with helpers. */
export class CoordinatorScenario {
  #fixture: CoordinatorFixture | undefined;

  async begin(create: () => Promise<CoordinatorFixture>): Promise<void> {
    this.#fixture = await create();
  }

  async end(): Promise<void> {
    await this.#fixture?.close();
    this.#fixture = undefined;
  }

  get store(): Store {
    return this.#begun.store;
  }

  get one(): Coordinator {
    return this.#begun.coordinators[0];
  }

  get other(): Coordinator {
    return this.#begun.coordinators[1];
  }

  async insert(subscriptions: readonly Subscription[]): Promise<void> {
    await this.#begun.insert(subscriptions);
  }

  async elapse(durationMs: number): Promise<void> {
    await this.#begun.elapse(durationMs);
  }

  /** Makes a node a member that can deliver the groups. */
  async join(id: NodeId, groups: readonly GroupId[] = both): Promise<void> {
    expect(await this.one.join({ id, address: addressOf(id) }, lastsMs)).toBe("joined");
    expect(await this.one.renew(id, { lastsMs, groups })).toBe(true);
  }

  /** Lets one membership expire, but not those of `others`. */
  async expire(id: NodeId, others: readonly NodeId[] = []): Promise<void> {
    await this.elapse(lastsMs - nearEndMs);
    for (const other of others) expect(await this.one.renew(other, { lastsMs, groups: both })).toBe(true);
    await this.elapse(nearEndMs);
    expect((await this.one.listNodes()).map((node) => node.id)).not.toContain(id);
  }

  async ownerOf(number: number): Promise<Pick<Subscription, "owner" | "epoch">> {
    const found = await this.store.findSubscription(subscriptionOf(number).id);
    if (found === undefined) throw new Error(`there is no subscription ${number}`);
    if (found.state === "damaged") throw new Error(`a change did not update the checksum of subscription ${number}`);
    return { owner: found.owner, epoch: found.epoch };
  }

  async countHeld(...nodes: readonly NodeId[]): Promise<readonly number[]> {
    return Promise.all(nodes.map(async (node) => (await this.one.listOwned(node)).length));
  }

  /** Hands over every requested subscription of these owners; returns how many. */
  async handOverRequested(...nodes: readonly NodeId[]): Promise<number> {
    let count = 0;
    for (const node of nodes) {
      const requested = (await this.one.listOwned(node)).filter(({ wantedBy }) => wantedBy !== undefined);
      await this.one.handOver(requested);
      count += requested.length;
    }
    return count;
  }

  get #begun(): CoordinatorFixture {
    if (this.#fixture === undefined) throw new Error("the test has not begun");
    return this.#fixture;
  }
}
