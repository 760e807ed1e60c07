import { findException, type HttpDoor, isRecord } from "./http-door.ts";
import type { CallOptions } from "./options.ts";
import { toStrangeAnswer } from "./stele-error.ts";

/** What a caller may do. Each right may be to some topics alone, so a call can be refused all the same. */
export interface Rights {
  /** The tenant, where there is one, a slash, and the name. Absent where nobody logs in. */
  readonly principal?: string;
  /** When the credential ends (ISO 8601); absent for never. */
  readonly expiresAt?: string;
  /** `open`, `close`, `publish`, `subscribe`, `read`, `unsubscribe`, `admin`. */
  readonly actions: readonly string[];
  /** Whose calls are at this port: `clients`, `operators`. */
  readonly serves: readonly string[];
}

/** `GET /access`. */
export async function getRights(door: HttpDoor, options: CallOptions): Promise<Rights> {
  const url = `${door.base}/access`;
  const answer = await door.ask({ url, method: "GET" }, options);
  const exception = findException(answer);
  if (exception !== undefined) throw exception;
  if (isRecord(answer.value) && Array.isArray(answer.value["actions"])) return answer.value as unknown as Rights; // As OpenAPI has it.
  throw toStrangeAnswer(url, `status ${answer.status}`);
}
