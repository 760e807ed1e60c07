import { findException, type HttpDoor, isRecord } from "./http-door.ts";
import type { CallOptions } from "./options.ts";
import { toStrangeAnswer } from "./stele-error.ts";

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
export async function getRights(door: HttpDoor, options: CallOptions): Promise<Rights> {
  const url = `${door.base}/access`;
  const answer = await door.ask({ url, method: "GET" }, options);
  const exception = findException(answer);
  if (exception !== undefined) throw exception;
  if (isRecord(answer.value) && Array.isArray(answer.value["actions"])) return answer.value as unknown as Rights; // OpenAPI declares this shape.
  throw toStrangeAnswer(url, `status ${answer.status}`);
}
