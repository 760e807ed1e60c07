import { bodyChunks } from "../lib/body-chunks.ts";
import { withDeadline } from "../lib/with-deadline.ts";
import { collectText } from "./collect-text.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/** Time limit for one answer, in milliseconds. */
export const answerTimeoutMs = 30_000;

export interface HttpRequest {
  readonly url: string;
  /** A JSON body makes it a POST. */
  readonly body?: unknown;
  /** Name of the server, as the user knows it. */
  readonly name: string;
  /** Key or token for the server. */
  readonly key?: (() => string) | undefined;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One HTTP request with a JSON answer. @throws Unverifiable if no JSON answer arrives. */
export async function askJson({ url, body, name, key, headers: more }: HttpRequest): Promise<unknown> {
  const headers = {
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(key === undefined ? {} : { authorization: `Bearer ${key()}` }),
    ...more,
  };
  const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  try {
    return await withDeadline({ timeoutMs: answerTimeoutMs }, async (signal) => {
      // No redirects: the key must not travel to another server.
      const response = await fetch(url, { signal, redirect: "error", headers, ...post });
      const text = await collectText(bodyChunks(response, signal), { name });
      if (!response.ok && !text.startsWith("{")) throw new Error(`HTTP status ${response.status}`);
      return JSON.parse(text) as unknown;
    });
  } catch (error) {
    if (error instanceof AnswerTooLong) throw error;
    throw new Unverifiable(`${name} does not answer`, error);
  }
}
