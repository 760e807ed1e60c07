import type { Broker } from "../../engine/broker.ts";
import type { BoundedLog } from "../../lib/bounded-log.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { ConnectionMemory } from "../shared/connection/memory.ts";
import type { Encodings } from "./encodings.ts";
import type { LostPublishes } from "./lost-publishes.ts";
import type { MqttMetrics } from "./metrics.ts";
import type { MqttSettings } from "./settings.ts";

/** What all connections share. */
export interface ConnectionParts {
  readonly broker: Pick<
    Broker,
    | "authenticate"
    | "mayConnect"
    | "attach"
    | "submit"
    | "submitAll"
    | "whenRoom"
    | "release"
    | "exist"
    | "open"
    | "pass"
  >;
  readonly losses: LostPublishes;
  readonly encodings: Encodings;
  readonly settings: MqttSettings;
  readonly metrics: MqttMetrics;
  readonly memory: ConnectionMemory;
  readonly logger: Logger;
  /** Log of refused and ended connections. */
  readonly log: BoundedLog;
  /** Time slices of the event loop, shared by all connections; each packet is a step. */
  readonly slices: TimeSlices;
  readonly newClientId: () => string;
}
