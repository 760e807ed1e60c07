/**
 * Yields the body of a `fetch` response, chunk by chunk. Ends the request if the caller stops reading, or if `signal` aborts. Pass the request's signal again:
 * Node 20 and 22 may ignore it once the response's head has arrived. @throws the reason of the signal; the stream's error.
 */
export async function* bodyChunks(
  { body }: Response,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body?.getReader();
  const cancel = (): void => void reader?.cancel().catch(() => {});
  signal.addEventListener("abort", cancel, { once: true });
  try {
    for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) yield read.value;
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}
