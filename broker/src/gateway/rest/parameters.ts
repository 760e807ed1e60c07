import { quote } from "@stele/wire";
import { copyOf } from "../../lib/copy-of.ts";
import { getQueryBytesMax, parametersMax } from "../limits.ts";
import { parameterError } from "../shared/failure.ts";

const plus = 0x2b;
const space = 0x20;

/** Parameters by name. A Map, because in an object some names, such as `__proto__`, have a special meaning. */
export type Parameters = Map<string, string>;

/**
 * Adds the pairs of a query string or form: `+` is a space, escapes are UTF-8.
 * @throws BrokerError 200001 for a malformed escape, invalid UTF-8, a repeated name, or too many parameters.
 */
export function addEncodedPairs(parameters: Parameters, text: string): void {
  const encoded = text.includes("+") ? plusesToSpaces(text) : text;
  let start = 0;
  while (start < encoded.length) {
    let end = encoded.indexOf("&", start);
    if (end === -1) end = encoded.length;
    if (end > start) addEncodedPair(parameters, cut(encoded, start, end));
    start = end + 1;
  }
}

function addEncodedPair(parameters: Parameters, pair: string): void {
  const equals = pair.indexOf("=");
  const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals));
  const value = equals === -1 ? "" : decodeComponent(pair.slice(equals + 1), name);
  addParameter(parameters, name, value);
}

/**
 * A part of a text. A slice keeps its whole text in memory, and a subscription keeps slices: its topic and url. So a small part of a long text, such as a
 * body of 1 MiB, is copied.
 */
function cut(text: string, start: number, end: number): string {
  const part = text.slice(start, end);
  return text.length > getQueryBytesMax && part.length < text.length / 2 ? copyOf(part) : part;
}

/** @throws BrokerError 200001 if the query or the body has already given the name, or if there are too many parameters. */
export function addParameter(parameters: Parameters, name: string, value: string): void {
  if (parameters.has(name)) throw parameterError(`${quote(name)} is given more than once`);
  if (parameters.size >= parametersMax) throw parameterError(`there are more than ${parametersMax} parameters`);
  parameters.set(name, value);
}

/** Replaces bytes: in a text of 1 MiB with many pluses, `replaceAll` would block the event loop for a tenth of a second. */
function plusesToSpaces(text: string): string {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === plus) bytes[at] = space;
  return bytes.toString();
}

/**
 * Decodes the value of the parameter `name`; without `name`, decodes a name. The error does not quote the value, because the broker logs errors, and the value
 * may be a secret or a url that contains one.
 */
function decodeComponent(text: string, name?: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    const part = name === undefined ? "the name of a parameter" : `the value of ${quote(name)}`;
    throw parameterError(`${part} has a malformed escape or is not valid UTF-8`, cause);
  }
}
