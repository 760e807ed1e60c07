import type { Extensions } from "../../domain/event.ts";
import { sessionMarks } from "../../domain/session-filter.ts";
import { withoutTraceParent } from "../../domain/trace-parent.ts";

/** Marks that may differ between a publish and its repeat: the expiry counts from the receipt, the origin depends on the filters at the receipt. */
const variableMarks: readonly string[] = [sessionMarks.expiresAt, sessionMarks.origin];

/** The extensions by which a repeat of a session's publish is recognized. */
export function toSessionIdentity(extensions: Extensions, extensionPrefix: string): Extensions {
  return toIdentity(extensions, extensionPrefix).filter(
    ([name]) => !variableMarks.some((mark) => name === extensionPrefix + mark),
  );
}

/** The extensions by which a repeat of any other publish is recognized. */
export function toIdentity(extensions: Extensions, extensionPrefix: string): Extensions {
  return withoutTraceParent(extensions, extensionPrefix);
}
