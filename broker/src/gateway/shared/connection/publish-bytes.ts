import type { PublishCall } from "../../../engine/broker.ts";
import { keptExtensionBytes } from "./limits.ts";

/** Approximate memory of a publish until it is submitted, in bytes. */
export function publishBytes({ topic, groupId = "", key = "", content, extensions }: PublishCall): number {
  let bytes = content.byteLength + topic.length + groupId.length + key.length;
  for (const [key, value] of extensions) bytes += keptExtensionBytes + key.length + value.length;
  return bytes;
}
