import type { Client, StompConfig } from "@stomp/stompjs";
import type { Line } from "../../harness/lines.ts";

export interface DriverOptions {
  readonly Client: new (config: StompConfig) => Client;
  readonly config: StompConfig;
  /** Called with each report. */
  readonly say: (line: Line) => void;
}

/** Runs a client of @stomp/stompjs, in Node.js or in a page. Returns the function that takes its orders. */
export function createDriver(options: DriverOptions): (order: string, fields?: object) => void;
