import { type CallOptions, ReceivedEvent, type Stele } from "@stele/client";
import { isServedElsewhere } from "../broker/describe-error.ts";

/** Reads an event. The operators' port does not serve `getEvent`: there, this calls the admin API. */
export async function readEvent(stele: Stele, eventId: string, options: CallOptions): Promise<ReceivedEvent> {
  try {
    return await stele.getEvent(eventId, options);
  } catch (error) {
    if (!isServedElsewhere(error)) throw error;
    return new ReceivedEvent(await stele.admin.event(eventId, options));
  }
}
