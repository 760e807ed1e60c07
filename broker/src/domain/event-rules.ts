import type { EventPayload, Extensions } from "./event.ts";

/** Limits for the events of a batch on the chain, whoever published it. */
export interface EventRules {
  readonly contentBytesMax: number;
  /** UTF-8 bytes of all keys and values of an event. */
  readonly extensionsBytesMax: number;
  /** Bytes of the encoded list. */
  readonly batchBytesMax: number;
  /** Every extension key must begin with one of these prefixes. */
  readonly keyPrefixes: readonly string[];
}

/** Every broker reads events within these limits, whatever its settings, so that brokers that share a topic agree on them. */
export const commonEventRules: EventRules = {
  contentBytesMax: 262_144,
  extensionsBytesMax: 16_384,
  batchBytesMax: 1_048_576,
  keyPrefixes: ["svc-"],
};

/** The rules by which a broker reads: its own limits for publishing, but no less than {@link commonEventRules}. */
export function toEventRules(own: EventRules): EventRules {
  return {
    contentBytesMax: Math.max(own.contentBytesMax, commonEventRules.contentBytesMax),
    extensionsBytesMax: Math.max(own.extensionsBytesMax, commonEventRules.extensionsBytesMax),
    batchBytesMax: Math.max(own.batchBytesMax, commonEventRules.batchBytesMax),
    keyPrefixes: [...new Set([...commonEventRules.keyPrefixes, ...own.keyPrefixes])],
  };
}

/** Which rule the batch breaks, in words; undefined if none. `bytes` is the length of the encoded list. */
export function findBreach(
  { events, bytes }: { readonly events: readonly EventPayload[]; readonly bytes: number },
  rules: EventRules,
): string | undefined {
  if (bytes > rules.batchBytesMax) return `a batch of ${bytes} bytes, at most ${rules.batchBytesMax} are read`;
  for (const [index, event] of events.entries()) {
    const breach = findBreachOf(event, rules);
    if (breach !== undefined) return `event ${index} of the batch: ${breach}`;
  }
  return undefined;
}

/** UTF-8 bytes of all keys and values. */
export function extensionsBytes(extensions: Extensions): number {
  return extensions.reduce((sum, [key, value]) => sum + utf8Bytes(key) + utf8Bytes(value), 0);
}

function findBreachOf({ content, extensions }: EventPayload, rules: EventRules): string | undefined {
  const { contentBytesMax, extensionsBytesMax, keyPrefixes } = rules;
  if (content.byteLength > contentBytesMax) {
    return `a content of ${content.byteLength} bytes, at most ${contentBytesMax} are read`;
  }
  const bytes = extensionsBytes(extensions);
  if (bytes > extensionsBytesMax) return `extensions of ${bytes} bytes, at most ${extensionsBytesMax} are read`;
  const isPrefixed = extensions.every(([key]) => keyPrefixes.some((prefix) => key.startsWith(prefix)));
  return isPrefixed ? undefined : `an extension key that does not begin with ${keyPrefixes.join(" or ")}`;
}

const encoder = new TextEncoder();

function utf8Bytes(text: string): number {
  return encoder.encode(text).byteLength;
}
