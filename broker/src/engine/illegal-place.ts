import { BrokerError, quote } from "@stele/wire";

/** The error for a place that the caller misspelt. `others` names further forms that the caller may give. */
export function illegalPlace(text: string, others = ""): BrokerError {
  const forms = `OFFSET_FIRST, OFFSET_LAST${others} or an eventId (<8 lower-case hex digits>-<sequence>-<block>)`;
  return new BrokerError("eventIdIllegal", { details: `${quote(text)} is not ${forms}` });
}
