import { isBrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";

interface Trouble {
  /** Undefined if the group is unknown. */
  readonly groupId: GroupId | undefined;
  readonly reason: string;
  readonly error?: unknown;
}

/** Readers (subscriptions, sessions, shares) and whole groups that get no events because the events or the subscriptions' rows cannot be read. */
export class Troubles {
  readonly #byReader = new Map<string, Trouble>();
  readonly #byGroup = new Map<GroupId, string>();
  readonly #damagedRows = new Set<SubscriptionId>();

  /** Notes that no events of a group are delivered. */
  noteGroup(groupId: GroupId, reason: string): void {
    this.#byGroup.set(groupId, reason);
  }

  clearGroup(groupId: GroupId): void {
    this.#byGroup.delete(groupId);
  }

  note(id: SubscriptionId, trouble: Trouble): void {
    this.noteReader(nameOf(id), trouble);
  }

  /** Notes that the row of a subscription is damaged. A damaged row may have a wrong group. */
  noteDamagedRow(id: SubscriptionId, reason: string): void {
    this.#damagedRows.add(id);
    this.note(id, { groupId: undefined, reason });
  }

  clear(id: SubscriptionId): void {
    this.#damagedRows.delete(id);
    this.clearReader(nameOf(id));
  }

  /** The subscriptions whose rows were damaged when this node read them last. */
  get damagedRows(): ReadonlySet<SubscriptionId> {
    return this.#damagedRows;
  }

  /** Notes that a reader gets no events. `name` is the reader's name in health. */
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

  /** A warning to the operator about a group, which may still be ready; undefined if there is none. */
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

/** Whether a reader waits for old events that only the chain has. That must not make the node unready: else any client could take it out of service. */
function isOfOldEvents({ error }: Trouble): boolean {
  return isBrokerError(error, "eventUnavailable") || isBrokerError(error, "chainUnreachable");
}

function nameOf(id: SubscriptionId): string {
  return `subscription ${id}`;
}
