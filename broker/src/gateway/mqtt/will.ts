import type { PublishCall, WillRequest } from "../../engine/broker.ts";
import type { Will } from "./codec/packet.ts";
import { toExtensions } from "./mapping.ts";

export interface WillContext {
  readonly groupId: string | undefined;
  readonly prefix: string;
  /** Whether a publish opens its topic. */
  readonly opensTopics: boolean;
}

/** The will of a CONNECT as the engine keeps it, with copies of all bytes: the will outlives the received packet. */
export function toWillRequest(will: Will, { groupId, prefix, opensTopics }: WillContext): WillRequest {
  const { willDelayInterval = 0, messageExpiryInterval, ...properties } = will.properties;
  // The expiry counts from the publication, so the engine adds its mark then (MQTT 5.0, section 3.1.3.2.4).
  const extensions = toExtensions({ ...will, properties }, { prefix, now: Date.now() });
  const content = new Uint8Array(will.payload);
  const call: PublishCall = { topic: will.topic, groupId, content, extensions, mayBeEmpty: true };
  return {
    delayMs: willDelayInterval * 1000,
    call,
    opensTopic: opensTopics,
    expiresAfterMs: messageExpiryInterval === undefined ? undefined : messageExpiryInterval * 1000,
  };
}
