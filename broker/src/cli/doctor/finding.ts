import { connect } from "node:net";
import { describeNetworkFailure } from "../../lib/network-failure.ts";
import type { Place } from "../broker-settings.ts";

/** The result of one check. */
export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
  /** What to do. */
  readonly advice?: string | undefined;
}

/** Time limit for connecting to a port, in milliseconds. */
const connectTimeoutMs = 3_000;

/** Tries to connect. Returns why that failed, or undefined if it succeeded. @throws the reason of the signal. */
export function findConnectionFailure(
  { host, port }: Pick<Place, "host" | "port">,
  signal: AbortSignal,
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal, timeout: connectTimeoutMs });
    const end = (failure: string | undefined): void => {
      socket.destroy();
      resolve(failure);
    };
    socket.once("connect", () => end(undefined));
    socket.once("timeout", () => end(`nothing answers within ${connectTimeoutMs / 1_000} s`));
    socket.once("error", (error) => {
      if (signal.aborted) reject(signal.reason);
      else end(describeNetworkFailure(error));
    });
  });
}
