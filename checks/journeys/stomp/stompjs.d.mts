import type { Client, StompConfig } from "@stomp/stompjs";
import type { Line } from "../../harness/lines.ts";

export interface DriverOptions {
  readonly Client: new (config: StompConfig) => Client;
  readonly config: StompConfig;
  /** Takes the reports. */
  readonly say: (line: Line) => void;
}

/** Runs a client of @stomp/stompjs, in Node or in a page: returns what takes its orders. */
export function createDriver(options: DriverOptions): (order: string, fields?: object) => void;
