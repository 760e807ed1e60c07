import { expect } from "vitest";
import type { GroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Store } from "./store.ts";
import { group, otherGroup, subscriptionOf } from "./store-examples.contract.ts";

/** A store that is started, and what coordinates those that share it. */
export interface CoordinatorFixture {
  readonly store: Store;
  /** As two nodes see it. */
  readonly coordinators: readonly [Coordinator, Coordinator];
  /** Puts subscriptions in, with owner and epoch as they are given. */
  insert(subscriptions: readonly Subscription[]): Promise<void>;
  /** Lets the coordinator's clock go on. */
  elapse(durationMs: number): Promise<void>;
  close(): Promise<void>;
}

/** How long memberships last. */
export const lastsMs = 3_600_000;
/** How near to its end a membership is looked at: long, since the clock of a database goes on by itself while calls are made. */
export const nearEndMs = 60_000;
export const both = [group, otherGroup];
export const noMember = expect.objectContaining({ name: "BrokerError", code: 200207 });

/** An identifier of a joining, by a number. */
export function nodeIdOf(number: number): NodeId {
  return `00000000-0000-4000-9000-${number.toString(16).padStart(12, "0")}` as NodeId;
}

export const a = nodeIdOf(1);
export const b = nodeIdOf(2);
export const c = nodeIdOf(3);

export function addressOf(id: NodeId): string {
  return `${id.slice(-1)}.example:8080`;
}

/** A fixture for each test, and what tests do with it. */
export class CoordinatorTrial {
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

  /** Makes a member that delivers the groups. */
  async join(id: NodeId, groups: readonly GroupId[] = both): Promise<void> {
    expect(await this.one.join({ id, address: addressOf(id) }, lastsMs)).toBe("joined");
    expect(await this.one.renew(id, { lastsMs, groups })).toBe(true);
  }

  /** Ends a membership by time alone, and not those of the others. */
  async expire(id: NodeId, others: readonly NodeId[] = []): Promise<void> {
    await this.elapse(lastsMs - nearEndMs);
    for (const other of others) expect(await this.one.renew(other, { lastsMs, groups: both })).toBe(true);
    await this.elapse(nearEndMs);
    expect((await this.one.listNodes()).map((node) => node.id)).not.toContain(id);
  }

  async ownerOf(number: number): Promise<Pick<Subscription, "owner" | "epoch">> {
    const found = await this.store.findSubscription(subscriptionOf(number).id);
    if (found === undefined) throw new Error(`there is no subscription ${number}`);
    return { owner: found.owner, epoch: found.epoch };
  }

  async countHeld(...nodes: readonly NodeId[]): Promise<readonly number[]> {
    return Promise.all(nodes.map(async (node) => (await this.one.listHoldings(node)).length));
  }

  /** What owners do that see that they are asked; answers how many. */
  async handOverAsked(...nodes: readonly NodeId[]): Promise<number> {
    let count = 0;
    for (const node of nodes) {
      const asked = (await this.one.listHoldings(node)).filter(({ wantedBy }) => wantedBy !== undefined);
      await this.one.handOver(asked);
      count += asked.length;
    }
    return count;
  }

  get #begun(): CoordinatorFixture {
    if (this.#fixture === undefined) throw new Error("the test has not begun");
    return this.#fixture;
  }
}
