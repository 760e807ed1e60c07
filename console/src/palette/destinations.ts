import { parseEventId } from "../lib/event-id.ts";
import { views } from "../views.ts";

export interface Destination {
  readonly name: string;
  readonly address: string;
}

/** A UUID. For operators, the name of the tenant comes before it, as in `acme/6f59…`. */
const subscriptionId = /^(?:[^/\s]+\/)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Destinations for a text: first the event or subscription with this identifier, then views with this name, then the topic. */
export function findDestinations(text: string): readonly Destination[] {
  const wanted = text.trim();
  if (wanted === "") return views;
  return [
    ...identified(wanted),
    ...views.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase())),
    ...topics(wanted),
  ];
}

function identified(text: string): readonly Destination[] {
  if (parseEventId(text) !== undefined) {
    return [
      { name: `Event ${text}`, address: `/events/${text}` },
      { name: `Proof of ${text}`, address: `/events/${text}/proof` },
    ];
  }
  return subscriptionId.test(text) ? [{ name: `Subscription ${text}`, address: `/subscriptions/${text}` }] : [];
}

function topics(text: string): readonly Destination[] {
  const prefix = text.replace(/[+#].*$/, "");
  return [
    { name: `Tail ${text}`, address: `/tail?${new URLSearchParams({ topic: text }).toString()}` },
    {
      name: `Subscriptions whose topic begins with ${prefix}`,
      address: `/subscriptions?${new URLSearchParams({ prefix }).toString()}`,
    },
  ];
}
