import { afterAll, beforeAll } from "vitest";
import { type Behaviour, type Receiver, startReceiver } from "./receiver.ts";
import type { RunningWorld, World, WorldOptions } from "./world.ts";

/** One broker for all tests of the enclosing describe block. */
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

/** Starts receivers that stop at the end of the enclosing describe block, whose tests may run concurrently. */
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
