import type { FastifyRequest } from "fastify";
import { toPath } from "../shared/base-path.ts";

/** What only operators use. A wallet in a page may read the chain where its origin is allowed. */
const operatorsPaths = ["/admin", "/metrics"] as const;

/** Whether a request is for operators alone. A preflight has no route: its path counts as it is written. */
export function isOperatorsPath({ routeOptions, raw }: FastifyRequest, basePath: string): boolean {
  const path = routeOptions.url ?? toPath(raw.url ?? "");
  return operatorsPaths.some((start) => path === basePath + start || path.startsWith(`${basePath}${start}/`));
}
