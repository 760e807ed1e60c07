/** A flag of a command that reads its words itself. */
export interface SettingFlag {
  readonly name: string;
  /** Undefined for one without a value; empty for one that takes any. */
  readonly choices?: readonly string[];
}

/** A place to connect to. */
export interface Place {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** What the settings of a broker on this machine say. */
export interface CheckedSettings {
  readonly dataDir: string;
  /** The database that nodes share, without a password; undefined for SQLite in the data folder. A socket of the file system has no place. */
  readonly database: { readonly name: string; readonly place: Place | undefined } | undefined;
  /** Ports for MQTT and STOMP. Undefined hosts are any address of the machine. */
  readonly ports: readonly Place[];
}

export type SettingsOutcome =
  | { readonly status: "valid"; readonly settings: CheckedSettings }
  | { readonly status: "refused"; readonly problems: readonly string[] };

/** What the commands know of the settings of a broker. It is loaded on demand: most commands need nothing of a broker. */
export interface BrokerSettings {
  /** The flags of all settings. */
  readonly flags: readonly SettingFlag[];
  /** Checks a config file and the environment as `stele start --check-config` does. */
  check(configFile: string | undefined, env: Readonly<Record<string, string | undefined>>): Promise<SettingsOutcome>;
}
