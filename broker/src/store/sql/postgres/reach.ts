import { Client } from "pg";
import { prepareSession, type SessionOptions } from "./session.ts";

/** Whether the server answers, found out by a connection of its own. @throws what the driver throws, StoreError when the server is not fit. */
export async function reach(options: SessionOptions, msMax: number): Promise<void> {
  const client = new Client({
    connectionString: options.address.connectionString,
    fallback_application_name: "stele",
    connectionTimeoutMillis: msMax,
  });
  client.on("error", () => {}); // The call that is under way learns of it.
  try {
    await client.connect();
    await prepareSession(client, { ...options, answerMsMax: msMax });
  } finally {
    client.end().catch(() => undefined);
  }
}
