import type { GroupId } from "../../domain/group-id.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";

interface Trouble {
  /** Undefined where nobody knows which group it is. */
  readonly groupId: GroupId | undefined;
  readonly reason: string;
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
    const whole = this.#byGroup.get(groupId);
    if (whole !== undefined) return whole;
    const found = [...this.#byReader].filter(([, one]) => one.groupId === undefined || one.groupId === groupId);
    const [first] = found;
    if (first === undefined) return undefined;
    const [name, { reason }] = first;
    const others = found.length === 1 ? "" : ` (and ${found.length - 1} more)`;
    return `${name} is not delivered${others}: ${reason}`;
  }
}

function nameOf(id: SubscriptionId): string {
  return `subscription ${id}`;
}
