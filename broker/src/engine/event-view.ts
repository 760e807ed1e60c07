import type { Event } from "../domain/event.ts";
import type { TenantNames } from "../domain/tenant-names.ts";
import type { TopicName } from "../domain/topic-name.ts";

/** Views of events, with topic names as their tenants see them. A topic belongs to one tenant, so all subscribers of an event share one view. */
const views = new WeakMap<Event, Event>();
/** The event of each view. */
const reals = new WeakMap<Event, Event>();

/** An event as the clients of its tenant see it. Its topic must be the tenant's. */
export function viewOf(event: Event, names: TenantNames): Event {
  const topic = names.toView(event.topic);
  if (topic === undefined) throw new Error("a subscriber must not get an event of another tenant");
  const known = views.get(event);
  if (known !== undefined) return known;
  const view = { ...event, topic: topic as TopicName }; // The index has only topics whose real names are valid.
  views.set(event, view);
  reals.set(view, event);
  return view;
}

/** The event of a view; the argument itself if it is not a view. */
export function realOf(view: Event): Event {
  return reals.get(view) ?? view;
}
