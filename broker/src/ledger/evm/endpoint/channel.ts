import type { EndpointError } from "./endpoint-error.ts";

/** Events of a channel. None comes after `onClose`. */
export interface ChannelEvents {
  readonly onOpen: () => void;
  readonly onMessage: (text: string) => void;
  /** The channel closed, or could not be opened. */
  readonly onClose: (failure: EndpointError) => void;
}

/** A bidirectional stream of messages. */
export interface Channel {
  send(text: string): void;
  /** Closes the channel; `onClose` may follow. */
  close(): void;
}

/** Starts to open a channel; `events` reports the outcome. */
export type OpenChannel = (events: ChannelEvents) => Channel;
