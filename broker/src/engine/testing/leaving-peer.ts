import type { Attachment } from "../broker.ts";
import type { EndReason } from "../session/peer.ts";
import { RecordingPeer } from "./recording-peer.ts";

const expiryMs = 600_000;

/** Detaches at once when the broker ends it or another connection takes the session over, as the connections of gateways do. */
export class LeavingPeer extends RecordingPeer {
  attachment: Attachment | undefined;
  readonly #isRegular: boolean;

  constructor({ isRegular }: { readonly isRegular: boolean }) {
    super();
    this.#isRegular = isRegular;
  }

  override ended(why: EndReason): void {
    super.ended(why);
    this.attachment?.detach({ expiryMs, isRegular: this.#isRegular });
  }
}
