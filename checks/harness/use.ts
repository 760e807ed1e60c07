import { afterAll, beforeAll } from "vitest";
import { type Behaviour, type Receiver, startReceiver } from "./receiver.ts";
import type { RunningWorld, World, WorldOptions } from "./world.ts";

/** Starts one world for all tests of the enclosing describe block. Returns a function that gives the tests the running world. */
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

/** Returns a function that starts a receiver. Receivers stop after the whole describe block, because its tests may run concurrently. */
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
