import type { EndpointError } from "./endpoint-error.ts";

/** What a channel tells. Nothing comes after `onClose`. */
export interface ChannelEvents {
  readonly onOpen: () => void;
  readonly onMessage: (text: string) => void;
  /** It is gone, or never came about. */
  readonly onClose: (failure: EndpointError) => void;
}

/** A way on which messages travel both ways at any time. */
export interface Channel {
  send(text: string): void;
  /** Ends it; `onClose` may follow. */
  close(): void;
}

/** Begins to open a channel; `events` tells what comes of it. */
export type OpenChannel = (events: ChannelEvents) => Channel;
