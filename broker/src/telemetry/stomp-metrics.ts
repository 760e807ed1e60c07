import { Counter, type Registry } from "prom-client";
import { watchConnections } from "./watch-connections.ts";

/** Metrics of the STOMP listener. The labels of an answer are the command of its frame and its code in the error catalogue. */
export interface StompCounters {
  answered(command: string, code?: number): void;
  watchConnections(read: () => number): void;
}

/** Codes of the errors that operators watch: faults of the broker, load, and access. Their counters start at 0, so that the first error is an increase. */
const watchedCodes = [200000, 200201, 200300, 200301, 100701, 100702];

export function createStompMetrics(registry: Registry): StompCounters {
  const answers = new Counter({
    registers: [registry],
    labelNames: ["command", "code"] as const,
    name: "stele_stomp_answers_total",
    help: "CONNECTED, RECEIPT and ERROR frames of the broker, by code of the error catalogue; 0 for a success.",
  });
  for (const command of ["CONNECTED", "RECEIPT"]) answers.inc({ command, code: 0 }, 0);
  for (const code of watchedCodes) answers.inc({ command: "ERROR", code }, 0);
  return {
    answered: (command, code = 0) => answers.inc({ command, code }),
    watchConnections: (read) =>
      watchConnections(registry, { read, name: "stele_stomp_connections", protocol: "STOMP" }),
  };
}
