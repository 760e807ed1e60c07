/** A flag of a command that parses its own arguments. */
export interface SettingFlag {
  readonly name: string;
  /** Undefined for a flag without a value; empty for a flag that takes any value. */
  readonly choices?: readonly string[];
}

/** A host and port to connect to. */
export interface Place {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** Valid settings of a broker on this machine, as far as client commands need them. */
export interface CheckedSettings {
  readonly dataDir: string;
  /** Base URL at which this machine reaches the broker; undefined if the broker picks a free port. */
  readonly url: string | undefined;
  /** The same for the operators' listener; undefined unless the settings name its port. */
  readonly adminUrl: string | undefined;
  /** The database that nodes share: its address without a password, and its place unless it is a Unix socket. Undefined for SQLite in the data folder. */
  readonly database: { readonly name: string; readonly place: Place | undefined } | undefined;
  /** Ports for MQTT and STOMP. */
  readonly ports: readonly Place[];
}

export type SettingsOutcome =
  | { readonly status: "valid"; readonly settings: CheckedSettings }
  | { readonly status: "refused"; readonly problems: readonly string[] };

/** Access to the settings of a broker. Loaded on demand, because most client commands do not need it. */
export interface BrokerSettings {
  /** The flags of all settings. */
  readonly flags: readonly SettingFlag[];
  /** Checks a config file and the environment as `stele start --check-config` does. */
  check(configFile: string | undefined, env: Readonly<Record<string, string | undefined>>): Promise<SettingsOutcome>;
}
