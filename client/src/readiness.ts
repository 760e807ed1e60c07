import { findRestError, type HttpTransport, isRecord, toForeignAnswerError } from "./http-transport.ts";
import type { CallOptions } from "./options.ts";

/** Whether the groups of a broker can serve. With access control, only admins see more than `status`. */
export interface Readiness {
  /** `ready`, `partly ready`, `not ready` or `closing`. */
  readonly status: string;
  /** Absent for a single node. */
  readonly node?: NodeReadiness;
  readonly groups?: readonly GroupReadiness[];
  readonly listeners?: readonly { readonly name: string; readonly address: string }[];
}

export interface NodeReadiness {
  /** Where clients reach this node, host:port. */
  readonly address: string;
  readonly isMember: boolean;
  /** Why this node is not a member of its cluster. */
  readonly reason?: string;
}

export interface GroupReadiness {
  readonly groupId: string;
  readonly ready: boolean;
  /** Why the group cannot serve. */
  readonly reason?: string;
  readonly warning?: string;
  readonly indexedBlock: number;
  readonly headBlock?: number;
}

/** `GET /health/ready`. */
export async function getReadiness(transport: HttpTransport, options: CallOptions): Promise<Readiness> {
  const { groupId } = options;
  const query = groupId === undefined ? "" : `?groupId=${encodeURIComponent(groupId)}`;
  const url = `${transport.base}/health/ready${query}`;
  const answer = await transport.ask({ url, method: "GET" }, options);
  const exception = findRestError(answer);
  if (exception !== undefined) throw exception;
  if (isRecord(answer.value) && typeof answer.value["status"] === "string") return answer.value as unknown as Readiness; // OpenAPI declares this shape.
  throw toForeignAnswerError(url, answer);
}
