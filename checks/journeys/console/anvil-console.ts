import { type Anvil, startAnvil } from "../../harness/anvil.ts";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { ConsoleBrowser } from "./console-browser.ts";

/** A broker with its anvil, a client and a browser. */
export class AnvilConsole implements AsyncDisposable {
  readonly #folder: TempFolder;
  readonly anvil: Anvil;
  readonly broker: BrokerProcess;
  readonly client: Client;
  readonly browser: ConsoleBrowser;

  private constructor(
    folder: TempFolder,
    { anvil, broker, browser }: Pick<AnvilConsole, "anvil" | "broker" | "browser">,
  ) {
    this.#folder = folder;
    this.anvil = anvil;
    this.broker = broker;
    this.client = new Client(broker.url);
    this.browser = browser;
  }

  /** @param toEnv returns the broker's settings by environment name */
  static async start(toEnv: (anvil: Anvil) => Readonly<Record<string, string>>): Promise<AnvilConsole> {
    const folder = createTempFolder();
    const anvil = await startAnvil({});
    const broker = await startBroker({ dataDir: folder.path, env: toEnv(anvil) });
    return new AnvilConsole(folder, { anvil, broker, browser: await ConsoleBrowser.start() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser[Symbol.asyncDispose]();
    await this.client[Symbol.asyncDispose]();
    await this.broker[Symbol.asyncDispose]();
    await this.anvil[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}
