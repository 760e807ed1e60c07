import { Unverifiable } from "./unverifiable.ts";

/** How long one answer may take. */
const answerTimeoutMs = 30_000;

export interface HttpRequest {
  readonly url: string;
  /** A JSON body makes it a POST. */
  readonly body?: unknown;
  /** Whom it is for, as the user knows it. */
  readonly name: string;
}

/** One request over HTTP with a JSON answer. @throws Unverifiable when there is none. */
export async function askJson({ url, body, name }: HttpRequest): Promise<unknown> {
  const post = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  try {
    const init = { signal: AbortSignal.timeout(answerTimeoutMs), ...(body === undefined ? {} : post) };
    const response = await fetch(url, init);
    const text = await response.text();
    if (!response.ok && !text.startsWith("{")) throw new Error(`HTTP status ${response.status}`);
    return JSON.parse(text);
  } catch (error) {
    throw new Unverifiable(`${name} gives no answer`, error);
  }
}
