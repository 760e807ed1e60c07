import { findRestError, type HttpTransport, isRecord, toForeignAnswerError } from "./http-transport.ts";
import type { CallOptions } from "./options.ts";

/** What a caller may do. A right may cover only some topics, so the broker can still refuse a call. */
export interface Rights {
  /** `tenant/name`, or `name` without a tenant. Absent if the broker has no access control. */
  readonly principal?: string;
  /** When the credential expires (ISO 8601); absent if never. */
  readonly expiresAt?: string;
  /** `open`, `close`, `publish`, `subscribe`, `read`, `unsubscribe`, `admin`. */
  readonly actions: readonly string[];
  /** Whose calls this port serves: `clients`, `operators`. */
  readonly serves: readonly string[];
}

/** `GET /access`. */
export async function getRights(transport: HttpTransport, options: CallOptions): Promise<Rights> {
  const url = `${transport.base}/access`;
  const answer = await transport.ask({ url, method: "GET" }, options);
  const exception = findRestError(answer);
  if (exception !== undefined) throw exception;
  if (isRecord(answer.value) && Array.isArray(answer.value["actions"])) return answer.value as unknown as Rights; // OpenAPI declares this shape.
  throw toForeignAnswerError(url, answer);
}
