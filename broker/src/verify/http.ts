import { collectText } from "./collect-text.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/** Timeout of one answer. */
const answerTimeoutMs = 30_000;

export interface HttpRequest {
  readonly url: string;
  /** A JSON body makes it a POST. */
  readonly body?: unknown;
  /** Name of the server, as the user knows it. */
  readonly name: string;
  readonly answerBytesMax?: number;
}

/** One HTTP request with a JSON answer. @throws Unverifiable if there is none. */
export async function askJson({ url, body, name, answerBytesMax }: HttpRequest): Promise<unknown> {
  const post = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  try {
    const init = { signal: AbortSignal.timeout(answerTimeoutMs), ...(body === undefined ? {} : post) };
    const response = await fetch(url, init);
    const text = response.body === null ? "" : await collectText(response.body, { name, bytesMax: answerBytesMax });
    if (!response.ok && !text.startsWith("{")) throw new Error(`HTTP status ${response.status}`);
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof AnswerTooLong) throw error;
    throw new Unverifiable(`${name} does not answer`, error);
  }
}
