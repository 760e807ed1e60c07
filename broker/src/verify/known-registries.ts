import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";
import type { ChainIdentity } from "./chain-client.ts";
import { Unverifiable } from "./unverifiable.ts";

const schema = z.strictObject({
  version: z.literal(1),
  chains: z.array(
    z.strictObject({
      chainId: z.int(),
      genesisHash: z.string(),
      registries: z.array(z.string().regex(/^0x[0-9a-f]{40}$/)),
    }),
  ),
});

type Content = z.infer<typeof schema>;

const folderMode = 0o700;
const fileMode = 0o600;

/** Default path of a user's known registries: with their other settings (XDG Base Directory 0.8). */
export function knownRegistriesFile(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const folder = env["XDG_CONFIG_HOME"]?.startsWith("/") === true ? env["XDG_CONFIG_HOME"] : join(home, ".config");
  return join(folder, "stele", "known-registries.json");
}

/** The registries that a user trusts, by chain, like known_hosts of ssh. @throws Unverifiable for a file that cannot be read or written. */
export class KnownRegistries {
  readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  list(chain: ChainIdentity): readonly string[] {
    return this.#read().chains.find((known) => isSame(known, chain))?.registries ?? [];
  }

  add(chain: ChainIdentity, registry: string): void {
    const { chains } = this.#read();
    const { chainId, genesisHash } = chain;
    const others = chains.filter((known) => !isSame(known, chain));
    const registries = [...new Set([...this.list(chain), registry])];
    this.#write({ version: 1, chains: [...others, { chainId, genesisHash, registries }] });
  }

  #read(): Content {
    try {
      return schema.parse(JSON.parse(readFileSync(this.file, "utf8")));
    } catch (error) {
      if (isMissing(error)) return { version: 1, chains: [] };
      throw new Unverifiable(`${this.file} does not contain known registries; fix it or move it away`, error);
    }
  }

  /** Atomically. */
  #write(content: Content): void {
    const draft = `${this.file}.${process.pid}.draft`;
    try {
      mkdirSync(dirname(this.file), { recursive: true, mode: folderMode });
      writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: fileMode });
      renameSync(draft, this.file);
    } catch (error) {
      rmSync(draft, { force: true });
      throw new Unverifiable(`cannot write ${this.file}; name another file with --known-registries`, error);
    }
  }
}

function isSame(left: ChainIdentity, right: ChainIdentity): boolean {
  return left.chainId === right.chainId && left.genesisHash === right.genesisHash;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
