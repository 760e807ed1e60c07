import { findJson } from "../../../lib/find-json.ts";
import type { EndpointAddress } from "./address.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";

/** Upper bound on an endpoint's answer, in bytes. If an answer is longer, the requested block range counts as too wide. */
export const answerBytesMax = 67_108_864;
/** Timeout of a request to an endpoint, until the answer is complete, in milliseconds. */
export const requestTimeoutMs = 15_000;
/** Timeout of an attempt to connect to an endpoint, in milliseconds. */
export const connectTimeoutMs = 5_000;

/** An object from an endpoint, not validated. */
export type RawAnswer = Readonly<Record<string, unknown>>;

export function parseObject(text: string): RawAnswer | undefined {
  return toObject(findJson(text));
}

/** The answers to a batch, in the order of `ids`; undefined in place of a missing answer. Undefined as a whole if the text is not a JSON array. */
export function parseBatch(text: string, ids: readonly number[]): readonly (RawAnswer | undefined)[] | undefined {
  const value = findJson(text);
  if (!Array.isArray(value)) return undefined;
  const answers = value.map(toObject);
  return ids.map((id) => answers.find((answer) => answer?.["id"] === id));
}

function toObject(value: unknown): RawAnswer | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as RawAnswer) : undefined; // Just checked.
}

/** The count or number that an endpoint returned as a quantity; undefined for anything else, such as "0x" from a chain node that has no answer. */
export function findCount(quantity: unknown): number | undefined {
  const count = typeof quantity === "string" && quantity !== "" ? Number(quantity) : undefined;
  return Number.isSafeInteger(count) ? count : undefined;
}

export function findError(answer: RawAnswer, address: EndpointAddress, method?: string): RpcAnswerError | undefined {
  const { error } = answer;
  if (typeof error !== "object" || error === null) return undefined;
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown }; // Checked below.
  return new RpcAnswerError(address.scrub(typeof message === "string" ? message : "an error without a message"), {
    code: typeof code === "number" ? code : 0,
    data: typeof data === "string" ? address.scrub(data) : data,
    method,
  });
}

/** The result in an answer (JSON-RPC 2.0, section 5). @throws RpcAnswerError if the answer has an error; EndpointError if it has neither. */
export function readAnswer(answer: RawAnswer | undefined, address: EndpointAddress, method?: string): unknown {
  const error = answer === undefined ? undefined : findError(answer, address, method);
  if (error !== undefined) throw error;
  if (answer !== undefined && "result" in answer) return answer["result"];
  throw new EndpointError(`${address.name}: the answer is not JSON-RPC`, { reach: "unknown" });
}
