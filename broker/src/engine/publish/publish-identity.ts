import type { Extensions } from "../../domain/event.ts";
import { sessionMarks } from "../../domain/session-filter.ts";

/** Marks that differ between a publish and its repeat: one counts from the time of receipt, one depends on the filters of that moment. */
const variableMarks: readonly string[] = [sessionMarks.expiresAt, sessionMarks.origin];

/** The extensions by which a repeat of a session's publish is known. */
export function toIdentity(extensions: Extensions, extensionPrefix: string): Extensions {
  return extensions.filter(([name]) => !variableMarks.some((mark) => name === extensionPrefix + mark));
}
