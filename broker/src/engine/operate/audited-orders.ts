import type { AuditTrail } from "../access/audit-trail.ts";
import type { Caller } from "../access/caller.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { OrderResult } from "./calls.ts";
import type { ConcernedEvents } from "./concerned-events.ts";
import { describeOrder } from "./describe-order.ts";
import type { CountedOrder, SubscriptionOperator } from "./subscription-operator.ts";

/** Carries out orders; the caller's right is already checked. */
export interface Orders {
  order(caller: Caller, id: string, call: CountedOrder): Promise<OrderResult>;
  /** Answers what the order would concern, without carrying it out. */
  dryRun(ids: readonly SubscriptionId[], call: CountedOrder): Promise<readonly OrderResult[]>;
}

export function createOrders(operator: SubscriptionOperator, trail: AuditTrail | undefined): Orders {
  if (trail !== undefined) return new AuditedOrders(operator, trail);
  return {
    order: (_caller, id, call) => operator.order(id, call),
    dryRun: (ids, call) => operator.dryRun(ids, call),
  };
}

/** Writes an audit line before each order and another with its result. An order for a search gets both lines for each subscription. */
class AuditedOrders implements Orders {
  readonly #operator: SubscriptionOperator;
  readonly #trail: AuditTrail;

  constructor(operator: SubscriptionOperator, trail: AuditTrail) {
    this.#operator = operator;
    this.#trail = trail;
  }

  dryRun(ids: readonly SubscriptionId[], call: CountedOrder): Promise<readonly OrderResult[]> {
    return this.#operator.dryRun(ids, call);
  }

  async order(caller: Caller, id: string, call: CountedOrder): Promise<OrderResult> {
    if (call.isDryRun) return this.#operator.order(id, call);
    const action = call.order.kind;
    const letter = "eventId" in call.order && { eventId: call.order.eventId };
    const subject = { subscriptionId: id, ...letter, ...describeOrder(call.order) };
    return this.#trail.around({ caller, action, subject, describe: toConcerned }, () => this.#operator.order(id, call));
  }
}

function toConcerned({ events, unmatched }: OrderResult): ConcernedEvents {
  return { events, unmatched };
}
