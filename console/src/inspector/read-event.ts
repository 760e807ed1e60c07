import { type CallOptions, ReceivedEvent, type Stele } from "@stele/client";
import { isServedElsewhere } from "../broker/describe-error.ts";

/** An event. A port for operators serves only their own call for it. */
export async function readEvent(stele: Stele, eventId: string, options: CallOptions): Promise<ReceivedEvent> {
  try {
    return await stele.getEvent(eventId, options);
  } catch (error) {
    if (!isServedElsewhere(error)) throw error;
    return new ReceivedEvent(await stele.admin.event(eventId, options));
  }
}
