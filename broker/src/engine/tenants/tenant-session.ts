import { type BrokerError, toBrokerError } from "@stele/wire";
import type { Ticket } from "../../domain/delivery-window.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { eventFilterOf } from "../../domain/shared-filter.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { Attachment, ConnectedSession } from "../broker.ts";
import { inWordsOf } from "./tenant-errors.ts";

/** A session under the names that a tenant's client uses. */
export class TenantSession implements ConnectedSession {
  readonly #session: ConnectedSession;
  readonly #names: TenantNames;

  constructor(session: ConnectedSession, names: TenantNames) {
    this.#session = session;
    this.#names = names;
  }

  get id(): string {
    return this.#session.id;
  }

  get isStored(): boolean {
    return this.#session.isStored;
  }

  get inbound(): ConnectedSession["inbound"] {
    return this.#session.inbound;
  }

  get keys(): ConnectedSession["keys"] {
    return this.#session.keys;
  }

  get filterCount(): number {
    return this.#session.filterCount;
  }

  get isStuck(): boolean {
    return this.#session.isStuck;
  }

  hasFilter(filter: TopicFilter): boolean {
    return this.#session.hasFilter(toRealFilter(this.#names, filter));
  }

  originFor(topic: string): string | undefined {
    return this.#session.originFor(this.#names.toReal(topic));
  }

  acknowledge(ticket: Ticket): void {
    this.#session.acknowledge(ticket);
  }

  receive(ticket: Ticket): boolean {
    return this.#session.receive(ticket);
  }

  wake(): void {
    this.#session.wake();
  }

  reject(ticket: Ticket): void {
    this.#session.reject(ticket);
  }
}

/** The attachment of a tenant's client, under the names that it uses. */
export function toTenantAttachment(real: Attachment, session: ConnectedSession, names: TenantNames): Attachment {
  return {
    session,
    isPresent: real.isPresent,
    subscribe: (sessionFilters) => subscribe(real, names, sessionFilters),
    unsubscribe: (filters) => real.unsubscribe(filters.map((filter) => toRealFilter(names, filter))),
    detach: (leave) => real.detach(leave),
    linger: (until) => real.linger(until),
    end: () => real.end(),
  };
}

async function subscribe(
  real: Attachment,
  names: TenantNames,
  sessionFilters: readonly SessionFilter[],
): Promise<readonly (boolean | BrokerError)[]> {
  const faults = sessionFilters.map(({ filter }) => findFault(names, filter));
  const accepted = sessionFilters.filter((_, index) => faults[index] === undefined);
  const answers = await real.subscribe(
    accepted.map((sessionFilter) => ({ ...sessionFilter, filter: toRealFilter(names, sessionFilter.filter) })),
  );
  const left = answers.map((answer, index) => {
    const view = accepted[index]?.filter;
    if (typeof answer === "boolean" || view === undefined) return answer;
    // A refusal names the filter without its share.
    const namings = [view, eventFilterOf(view)].map((text) => ({ view: text, real: names.toRealFilter(text) }));
    return toBrokerError(inWordsOf(names, answer, namings));
  });
  return faults.map((fault) => fault ?? left.shift() ?? false);
}

function findFault(names: TenantNames, filter: TopicFilter): BrokerError | undefined {
  try {
    names.checkLength(filter);
    return undefined;
  } catch (error) {
    return toBrokerError(error);
  }
}

function toRealFilter(names: TenantNames, filter: TopicFilter): TopicFilter {
  return names.toRealFilter(filter) as TopicFilter; // The prefix has no wildcard; its length is checked before it is stored.
}
