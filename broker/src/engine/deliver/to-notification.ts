import type { Event } from "../../domain/event.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { CallbackTarget, Notification, NotifiedEvent } from "../../ports/sink.ts";
import type { EventOrigin } from "../broker.ts";
import type { EventIds } from "../event-ids.ts";
import { viewOf } from "../event-view.ts";

/** The target of a notification, and the topic names that its subscriber sees. */
export interface Addressee {
  readonly target: CallbackTarget;
  readonly eventIds: EventIds;
  /** The names of the subscriber's tenant; if left out, it sees the real topic names. */
  readonly names?: TenantNames | undefined;
}

export function toTarget({ id, delivery }: CallbackSubscription): CallbackTarget {
  const { format, url, secret, options } = delivery;
  return { id, format, url, secret, ...(options && { options }) };
}

/** Builds the notification of one event, or of a batch. `events` has at least one; `origins` has the same order. */
export function toNotification(
  addressee: Addressee,
  events: readonly Event[],
  origins: readonly EventOrigin[] | undefined,
): Notification {
  const { target } = addressee;
  const all = events.map((event, index) => toNotified(addressee, event, origins?.[index]));
  const [first] = all;
  if (first === undefined) throw new Error("a notification needs an event");
  const batch = target.options?.batchEvents === undefined ? undefined : { batch: all };
  return { subscription: target, ...first, ...batch };
}

function toNotified({ names, eventIds }: Addressee, event: Event, origin: EventOrigin | undefined): NotifiedEvent {
  const seen = names === undefined ? event : viewOf(event, names);
  return { event: seen, eventId: eventIds.of(event), ...(origin && { origin }) };
}
