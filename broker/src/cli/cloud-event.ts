import { createHash } from "node:crypto";
import type { Publication } from "@stele/client";
import { isBrokerError, parseCloudEvent, type PublishedCloudEvent } from "@stele/wire";
import { UsageError } from "./io.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });
/** Maximum number of characters of a line that an error message quotes. */
const quotedCharacters = 80;

/** Options that all events of one command share. If `once` is true, the publish key of each event is a hash of its source and id. */
export interface CloudEventOptions extends Omit<Publication, "content"> {
  /** Prefix of the keys of extensions. */
  readonly prefix: string;
}

/**
 * Reads a CloudEvent 1.0 in its JSON format as the broker does over HTTP (docs/rest.md, CloudEvents): the text of its data stays unchanged. Also reads
 * a CloudEvent that a tail wrote, without its sequence.
 * @throws UsageError if the line is not a CloudEvent, or names no topic.
 */
export function fromCloudEvent(line: Uint8Array, { topic, once, extensions, prefix }: CloudEventOptions): Publication {
  const { subject, content, extensions: own } = parse(line, prefix);
  const name = topic === "" ? subject : topic;
  if (name === undefined || name === "") {
    throw new UsageError(`give a topic: this CloudEvent has no subject: ${beginning(line)}`);
  }
  const attributes = Object.fromEntries(own);
  const source = [attributes[`${prefix}ce-source`], attributes[`${prefix}ce-id`]];
  return {
    topic: name,
    content,
    extensions: { ...attributes, ...extensions },
    once: once === true ? createHash("sha256").update(JSON.stringify(source)).digest("hex") : once,
  };
}

/** @throws UsageError if the line is not a CloudEvent. */
function parse(line: Uint8Array, prefix: string): PublishedCloudEvent {
  const text = findObject(line);
  if (text === undefined) throw new UsageError(`not a JSON object: ${beginning(line)}`);
  try {
    return parseCloudEvent(text, prefix, { mayBeRendered: true });
  } catch (error) {
    if (!isBrokerError(error)) throw error;
    throw new UsageError(`${error.message}: ${beginning(line)}`, { cause: error });
  }
}

/** The text of a JSON object; undefined for anything else. */
function findObject(line: Uint8Array): string | undefined {
  try {
    const text = utf8.decode(line);
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? text : undefined;
  } catch {
    return undefined;
  }
}

function beginning(line: Uint8Array): string {
  return Buffer.from(line).toString().slice(0, quotedCharacters);
}
