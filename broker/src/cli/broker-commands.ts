import { outputFormats } from "../lib/output-format.ts";
import type { SettingFlag } from "./broker-settings.ts";

/** A command that parses its own arguments; most such commands work on the settings and data of a broker. */
export interface BrokerCommand {
  readonly summary: string;
  /** The actions that its first argument may name. */
  readonly actions?: readonly string[];
  /** The command's own flags, without the settings of a broker. */
  readonly flags: readonly SettingFlag[];
  /** Whether the command also takes every setting of a broker as a flag. */
  readonly takesSettings: boolean;
}

const switches = (...names: readonly string[]): readonly SettingFlag[] => names.map((name) => ({ name }));
const values = (...names: readonly string[]): readonly SettingFlag[] => names.map((name) => ({ name, choices: [] }));
const outputFlags: readonly SettingFlag[] = ["-o", "--output"].map((name) => ({ name, choices: outputFormats }));
const onData = { flags: outputFlags, takesSettings: true } as const;

/** The commands by name. A test compares their flags with their help. */
export const brokerCommands: Readonly<Record<string, BrokerCommand>> = {
  start: {
    summary: "Starts a broker; so does stele without a command. stele start --help lists every setting.",
    flags: switches("--check-config", "--version"),
    takesSettings: true,
  },
  verify: {
    summary: "Verifies an event or a topic against the chain.",
    flags: [
      ...outputFlags,
      ...switches("--remember", "--json"),
      ...values("--topic", "--from", "--to", "--rpc", "--registry", "--known-registries", "--publisher", "--broker"),
      ...values("--url", "--admin-url", "--group", "--key-file", "--context", "--block-hash", "--from-block"),
    ],
    takesSettings: false,
  },
  key: {
    summary: "Creates, lists and revokes keys of clients.",
    actions: ["create", "list", "revoke"],
    flags: [...outputFlags, ...values("--principal", "--role", "--tenant", "--expires")],
    takesSettings: true,
  },
  role: {
    summary: "Lists and shows roles; sets and deletes roles in the store.",
    actions: ["list", "show", "set", "delete"],
    ...onData,
  },
  scrub: { summary: "Looks for damage in the data folder of a stopped broker.", ...onData },
  backup: { summary: "Copies the data folder of a broker, even while it runs.", ...onData },
  restore: { summary: "Restores a data folder from a backup.", ...onData },
  activate: { summary: "Lets a restored broker call receivers.", ...onData },
};
