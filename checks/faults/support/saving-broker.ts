import { type LocalBroker, type LocalBrokerOptions, startLocalBroker } from "../../harness/local-broker.ts";

/** A few blocks change this many bytes, so the broker soon writes their changes to the tables of the chain's state and of its log index. */
export const unsavedBytesMax = 4_096;

const env = {
  STELE_MQTT_PORT: "0",
  STELE_CALLBACK_BACKOFF_MAX_MS: "1000",
  STELE_CHAIN_UNSAVED_BYTES_MAX: String(unsavedBytesMax),
};

/** Starts a broker in this process that serves MQTT, and that soon writes to every table. Throws like {@link startLocalBroker}. */
export function startSavingBroker(options: LocalBrokerOptions): Promise<LocalBroker> {
  return startLocalBroker({ ...options, env: { ...env, ...options.env } });
}
