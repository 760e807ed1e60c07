import { PostgresClient } from "./client.ts";
import { prepareSession, type SessionOptions } from "./session.ts";

/** SQLSTATE of a server that answers but accepts no more connections. */
const tooMany = "53300";

/** Checks on a separate connection that the server answers. @throws the driver's error, or StoreError if the server is unsuitable. */
export async function reach(options: SessionOptions, msMax: number): Promise<void> {
  const client = new PostgresClient({
    address: options.address,
    fallback_application_name: "stele",
    connectionTimeoutMillis: msMax,
  });
  client.on("error", () => {}); // The call in progress gets the error.
  try {
    await client.connect();
    await prepareSession(client, { ...options, answerMsMax: msMax });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === tooMany)) throw error;
  } finally {
    client.end().catch(() => undefined);
  }
}
