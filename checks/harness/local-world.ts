import { Client } from "./client.ts";
import { type LocalBroker, startLocalBroker } from "./local-broker.ts";
import { createTempFolder } from "./temp-folder.ts";

/** A broker in this process with its embedded chain, and its client. */
export interface LocalWorld extends AsyncDisposable {
  readonly client: Client;
  readonly broker: LocalBroker;
  readonly dataDir: string;
}

export interface LocalWorldOptions {
  /** Settings by environment name. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Callbacks that a receiver does not answer hold up the end of a world for this time. */
const shutdown = { STELE_SHUTDOWN_DEADLINE_MS: "1000" };

/** For tests of what the broker answers, which do not depend on its process: a process takes three times as long to start. */
export const localWorld = {
  async start({ env = {} }: LocalWorldOptions = {}): Promise<LocalWorld> {
    const folder = createTempFolder();
    const options = { dataDir: folder.path, log: [], env: { ...shutdown, ...env } };
    const broker = await startLocalBroker(options).catch((error: unknown) => {
      folder[Symbol.dispose]();
      throw error;
    });
    const client = new Client(broker.url);
    const dispose = async (): Promise<void> => {
      await client[Symbol.asyncDispose]();
      await broker.stop();
      folder[Symbol.dispose]();
    };
    return { client, broker, dataDir: folder.path, [Symbol.asyncDispose]: dispose };
  },
};
