import { isBrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";

interface Trouble {
  /** Undefined where nobody knows which group it is. */
  readonly groupId: GroupId | undefined;
  readonly reason: string;
  readonly error?: unknown;
}

/** Readers of events (subscriptions, sessions, shares) and whole groups that are not delivered because the store cannot be read. */
export class Troubles {
  readonly #byReader = new Map<string, Trouble>();
  readonly #byGroup = new Map<GroupId, string>();

  /** Nothing of a group is delivered. */
  noteGroup(groupId: GroupId, reason: string): void {
    this.#byGroup.set(groupId, reason);
  }

  clearGroup(groupId: GroupId): void {
    this.#byGroup.delete(groupId);
  }

  note(id: SubscriptionId, trouble: Trouble): void {
    this.noteReader(nameOf(id), trouble);
  }

  clear(id: SubscriptionId): void {
    this.clearReader(nameOf(id));
  }

  has(id: SubscriptionId): boolean {
    return this.#byReader.has(nameOf(id));
  }

  /** `name` is what health calls it. */
  noteReader(name: string, trouble: Trouble): void {
    this.#byReader.set(name, trouble);
  }

  clearReader(name: string): void {
    this.#byReader.delete(name);
  }

  /** Why a group is not ready; undefined while it has no trouble. */
  reasonOf(groupId: GroupId): string | undefined {
    return this.#byGroup.get(groupId) ?? this.#describe(groupId, (one) => !isOfOldEvents(one));
  }

  /** What the operator should know of a group that may be ready; undefined while there is nothing. */
  warningOf(groupId: GroupId): string | undefined {
    return this.#describe(groupId, isOfOldEvents);
  }

  #describe(groupId: GroupId, isMeant: (one: Trouble) => boolean): string | undefined {
    const isOf = (one: Trouble): boolean => one.groupId === undefined || one.groupId === groupId;
    const found = [...this.#byReader].filter(([, one]) => isOf(one) && isMeant(one));
    const [first] = found;
    if (first === undefined) return undefined;
    const [name, { reason }] = first;
    const others = found.length === 1 ? "" : ` (and ${found.length - 1} more)`;
    return `${name} is not delivered${others}: ${reason}`;
  }
}

/** Whether a reader waits for old events that only the chain has: who reads what may not take a node out of service. */
function isOfOldEvents({ error }: Trouble): boolean {
  return isBrokerError(error, "eventUnavailable") || isBrokerError(error, "chainUnreachable");
}

function nameOf(id: SubscriptionId): string {
  return `subscription ${id}`;
}
