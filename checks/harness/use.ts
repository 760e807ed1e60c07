import { afterAll, beforeAll } from "vitest";
import { type Behaviour, type Receiver, startReceiver } from "./receiver.ts";
import type { RunningWorld, World, WorldOptions } from "./world.ts";

/** One broker for the tests of the describe block that this is called in. */
export function useWorld(world: World, options: WorldOptions = {}): () => RunningWorld {
  let running: RunningWorld | undefined;
  beforeAll(async () => {
    running = await world.start(options);
  });
  afterAll(async () => {
    await running?.[Symbol.asyncDispose]();
  });
  return () => {
    if (running === undefined) throw new Error("the broker is not started yet");
    return running;
  };
}

/** Starts receivers that end with the describe block that this is called in, whose tests may run at once. */
export function useReceivers(): (behaviour?: Behaviour) => Promise<Receiver> {
  const receivers: Receiver[] = [];
  afterAll(async () => {
    for (const receiver of receivers) await receiver[Symbol.asyncDispose]();
  });
  return async (behaviour) => {
    const receiver = await startReceiver(behaviour === undefined ? {} : { behaviour });
    receivers.push(receiver);
    return receiver;
  };
}
