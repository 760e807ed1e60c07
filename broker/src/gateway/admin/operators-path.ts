import type { FastifyRequest } from "fastify";
import { toPath } from "../shared/base-path.ts";

/** Name of the listener that serves operators alone. */
export const operatorsListener = "Operators";

/** Paths for operators only. `/chain` is not among them: a wallet in a page may read the chain if its origin is allowed. */
const operatorsPaths = ["/admin", "/metrics"] as const;

/** Whether a request is for operators alone. A preflight has no route, so its raw path counts. */
export function isOperatorsPath({ routeOptions, raw }: FastifyRequest, basePath: string): boolean {
  const path = routeOptions.url ?? toPath(raw.url ?? "");
  return operatorsPaths.some((start) => path === basePath + start || path.startsWith(`${basePath}${start}/`));
}
