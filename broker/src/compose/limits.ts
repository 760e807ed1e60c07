import type { Config } from "../config/settings.ts";
import { defaultEngineLimits, type EngineLimits } from "../engine/limits.ts";

/** The engine's limits, with the values of the settings. */
export function toEngineLimits(config: Config): EngineLimits {
  return {
    ...defaultEngineLimits,
    contentBytesMax: config.contentBytesMax,
    extensionsBytesMax: config.extensionsBytesMax,
    publishesWaitingMax: config.publishesWaitingMax,
    publishKeysMax: config.publishKeysMax,
    publishKeysPerCallerMax: Math.ceil(config.publishKeysMax / 2),
    publishKeyKeptMs: config.publishKeyKeptMs,
    subscriptionsPerReceiverMax: config.callbackSubscriptionsPerReceiverMax,
    retryDelayMsMin: config.callbackBackoffMinMs,
    retryDelayMsMax: config.callbackBackoffMaxMs,
    giveUpAfterMs: config.callbackGiveUpAfterMs,
    membershipMs: config.takeOverAfterMs,
    scrubPeriodMs: config.scrubPeriodMs,
  };
}
