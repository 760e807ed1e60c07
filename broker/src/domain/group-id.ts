import { BrokerError, quote } from "@stele/wire";

/** The name of a chain group. */
export type GroupId = string & { readonly __brand: "GroupId" };

/** The group of a call without groupId, unless configured otherwise. */
export const defaultGroupId = "1" as GroupId; // This literal passes parseGroupId.

/** Longest groupId, in characters. */
export const groupIdCharactersMax = 64;

/** Whether a call names a group: a blank text counts as left out. */
export function namesGroup(text: string | undefined): text is string {
  return text !== undefined && text.trim() !== "";
}

/** The groupId that a call means, unchecked. */
export function orDefaultGroup(text: string | undefined, defaultId: GroupId): string {
  return namesGroup(text) ? text : defaultId;
}

/** Checks a groupId: 1 to 64 printable ASCII characters without spaces. @throws BrokerError 100306. */
export function parseGroupId(text: string): GroupId {
  if (!/^[\x21-\x7e]+$/.test(text) || text.length > groupIdCharactersMax) {
    throw new BrokerError("groupInvalid", {
      details: `${quote(text)} is not 1 to ${groupIdCharactersMax} printable ASCII characters without a space`,
    });
  }
  return text as GroupId; // Checked above.
}
