import type { IncomingHttpHeaders } from "node:http";
import { BrokerError, integerParameters, type Operation, quote } from "@stele/wire";
import type { FastifyRequest } from "fastify";
import { getQueryBytesMax } from "../limits.ts";
import { BodyRefused, BodyTooLong, type RawBody } from "../shared/collect-body.ts";
import { findEncodingRefusal, parseContentType } from "../shared/content-type.ts";
import { checkWellFormed, decodeUtf8, isJsonObject, parseJson } from "../shared/decode-text.ts";
import { measureJson, repeatsName } from "../shared/json-shape.ts";
import { parameterError } from "../shared/failure.ts";
import { findQuery } from "../shared/find-query.ts";
import { addEncodedPairs, addParameter, type Parameters } from "./parameters.ts";

/** Member of a JSON body that holds extensions by name, in the form of event results and of JSON-RPC. */
const extensionsMember = "extensions";

/** How to read the parameters of one operation. */
export interface ParameterRules {
  /** Names that a JSON body may give as a number. */
  readonly integers: ReadonlySet<string>;
  /** Names of the operation's parameters. The broker ignores any other name without the extension prefix in a query or form, and refuses it in JSON. */
  readonly known: ReadonlySet<string>;
  /** Undefined if the operation takes no extensions. */
  readonly extensionPrefix: string | undefined;
}

export function toParameterRules(operation: Operation, extensionPrefix: string): ParameterRules {
  return {
    integers: new Set(integerParameters(operation.restParams)),
    known: new Set(Object.keys(operation.restParams.shape)),
    extensionPrefix: operation.hasExtensions ? extensionPrefix : undefined,
  };
}

/**
 * The parameters of a request, from its query and its body. Each name may occur once. @throws BrokerError 100201, 100206, 200001; 200300 if the
 * broker stopped reading the body.
 */
export function readParameters(request: FastifyRequest, rules: ParameterRules): Parameters {
  const parameters = readQuery(request);
  // createBodyCollector sets it; Fastify types it as unknown.
  const body = request.body as RawBody;
  if (body !== undefined) addBody(parameters, { body, headers: request.headers, rules });
  return parameters;
}

/** The parameters of the query alone. @throws BrokerError 200001. */
export function readQuery(request: FastifyRequest): Parameters {
  const parameters: Parameters = new Map();
  const query = findQuery(request.raw.url ?? "");
  if (request.method === "GET") checkQueryLength(query);
  if (query !== "") addEncodedPairs(parameters, query);
  return parameters;
}

function checkQueryLength(query: string): void {
  if (query.length <= getQueryBytesMax) return;
  throw parameterError(
    `the query has ${query.length} bytes, at most ${getQueryBytesMax} with GET; use POST with a body`,
  );
}

interface Body {
  readonly body: Exclude<RawBody, undefined>;
  readonly headers: IncomingHttpHeaders;
  readonly rules: ParameterRules;
}

function addBody(parameters: Parameters, { body, headers, rules }: Body): void {
  if (body instanceof BodyTooLong) throw bodyTooLongError(body, rules);
  if (body instanceof BodyRefused) throw body.error;
  if (body.length === 0) return;
  const refusal = findEncodingRefusal(headers);
  if (refusal !== undefined) throw parameterError(refusal);
  const { mediaType } = parseContentType(headers["content-type"]);
  if (mediaType === "application/x-www-form-urlencoded") addEncodedPairs(parameters, decodeUtf8(body));
  else if (mediaType === "application/json") addJsonMembers(parameters, body, rules);
  else {
    throw parameterError(
      `content type ${quote(mediaType)} is neither application/x-www-form-urlencoded nor application/json`,
    );
  }
}

// If the operation takes content, the content made the body long.
function bodyTooLongError({ bytesMax }: BodyTooLong, rules: ParameterRules): BrokerError {
  const details = `the request body is over ${bytesMax} bytes`;
  return rules.known.has("content") ? new BrokerError("contentTooLong", { details }) : parameterError(details);
}

function addJsonMembers(parameters: Parameters, body: Buffer, rules: ParameterRules): void {
  const shape = measureJson(body);
  if (shape.refusal !== undefined) throw parameterError(shape.refusal);
  const value = parseJson(body);
  if (!isJsonObject(value)) throw parameterError("the JSON body is not an object");
  for (const [name, member] of Object.entries(value)) {
    if (rules.known.has(name) || isExtension(name, rules)) addMember(parameters, { name, member, rules });
    else if (name === extensionsMember && rules.extensionPrefix !== undefined) addExtensions(parameters, member, rules);
    else throw unknownMemberError(name, rules);
  }
  if (repeatsName(shape, value)) throw parameterError("a member of the JSON body is given more than once");
}

/** A null counts as left out. */
function addMember(parameters: Parameters, { name, member, rules }: Member): void {
  if (member !== null) addParameter(parameters, name, toText(name, member, rules));
}

interface Member {
  readonly name: string;
  readonly member: unknown;
  readonly rules: ParameterRules;
}

/** Adds each extension as a parameter, so none may have the name of a parameter of the operation. */
function addExtensions(parameters: Parameters, value: unknown, rules: ParameterRules): void {
  if (value === null) return;
  if (!isJsonObject(value)) throw parameterError(`${quote(extensionsMember)} is not an object`);
  for (const [name, member] of Object.entries(value)) {
    if (!isExtension(name, rules)) {
      throw new BrokerError("extensionKeyInvalid", {
        details: `${quote(name)} does not begin with ${rules.extensionPrefix}`,
      });
    }
    if (rules.known.has(name)) throw parameterError(`the extension ${quote(name)} has the name of a parameter`);
    addParameter(parameters, name, toText(name, member, rules));
  }
}

function isExtension(name: string, { extensionPrefix }: ParameterRules): boolean {
  return extensionPrefix !== undefined && name.startsWith(extensionPrefix);
}

function unknownMemberError(name: string, { known, extensionPrefix }: ParameterRules): BrokerError {
  const names = [...known, ...(extensionPrefix === undefined ? [] : [extensionsMember])].join(", ");
  const extensions = extensionPrefix === undefined ? "" : `, and names that begin with ${extensionPrefix}`;
  return parameterError(
    `${quote(name)} is not a member of this operation's JSON body, which takes ${names}${extensions}`,
  );
}

function toText(name: string, member: unknown, rules: ParameterRules): string {
  if (typeof member === "string") return checkWellFormed(member, checkWellFormed(name, extensionsMember));
  if (typeof member === "number" && rules.integers.has(name)) return numberToText(member);
  const expected = rules.integers.has(name) ? "an integer" : "a string";
  throw parameterError(`${quote(name)} is not ${expected}`);
}

/** Writes an integer with all its digits: `String` gives large ones an exponent. */
function numberToText(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}
