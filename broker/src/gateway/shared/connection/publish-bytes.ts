import type { PublishCall } from "../../../engine/broker.ts";
import { keptExtensionBytes } from "./limits.ts";

/** What a publish takes in memory until it is submitted, about. */
export function publishBytes({ topic, groupId = "", key = "", content, extensions }: PublishCall): number {
  let bytes = content.byteLength + topic.length + groupId.length + key.length;
  for (const [key, value] of extensions) bytes += keptExtensionBytes + key.length + value.length;
  return bytes;
}
