import { PostgresClient } from "./client.ts";
import { prepareSession, type SessionOptions } from "./session.ts";

/** Of a server that answers, and gives out no more connections. */
const tooMany = "53300";

/** Finds out by a connection of its own that the server answers. @throws what the driver throws, StoreError when the server is not fit. */
export async function reach(options: SessionOptions, msMax: number): Promise<void> {
  const client = new PostgresClient({
    address: options.address,
    fallback_application_name: "stele",
    connectionTimeoutMillis: msMax,
  });
  client.on("error", () => {}); // The call that is under way learns of it.
  try {
    await client.connect();
    await prepareSession(client, { ...options, answerMsMax: msMax });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === tooMany)) throw error;
  } finally {
    client.end().catch(() => undefined);
  }
}
