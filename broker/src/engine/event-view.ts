import type { Event } from "../domain/event.ts";
import type { TenantNames } from "../domain/tenant-names.ts";
import type { TopicName } from "../domain/topic-name.ts";

/** Events under the names of their tenants. A topic is of one tenant, so an event has one such view, which all its subscribers share. */
const views = new WeakMap<Event, Event>();
/** By their views. */
const reals = new WeakMap<Event, Event>();

/** An event as the clients of its tenant see it. Its topic must be the tenant's. */
export function viewOf(event: Event, names: TenantNames): Event {
  const topic = names.toView(event.topic);
  if (topic === undefined) throw new Error("an event of another tenant was to be delivered");
  const known = views.get(event);
  if (known !== undefined) return known;
  const view = { ...event, topic: topic as TopicName }; // What a client wrote, checked when the topic was opened.
  views.set(event, view);
  reals.set(view, event);
  return view;
}

/** The event of a view. */
export function realOf(view: Event): Event {
  return reals.get(view) ?? view;
}
