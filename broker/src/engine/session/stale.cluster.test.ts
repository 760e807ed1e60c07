import { expect, it } from "vitest";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import type { EndReason } from "./peer.ts";

/** Counts the connections that end without a pause between them. The end of each takes a millisecond. */
class Ends {
  readonly counts: number[] = [];
  readonly reasons: EndReason[] = [];
  #count = 0;

  get ms(): number {
    return this.reasons.length;
  }

  add(why: EndReason): void {
    if (this.#count === 0) queueMicrotask(() => this.#pause());
    this.#count += 1;
    this.reasons.push(why);
  }

  #pause(): void {
    this.counts.push(this.#count);
    this.#count = 0;
  }
}

it("ends the connections of a node that loses its membership in slices, so that they do not block the node", async () => {
  const cluster = await TestCluster.start(2);
  const { broker, gate } = cluster.node(0);
  const ends = new Ends();
  class SlowPeer extends RecordingPeer {
    override ended = (why: EndReason): void => ends.add(why);
  }
  const request = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, will: undefined } as const;
  for (let number = 0; number < 100; number += 1) {
    const rest = { key: `c${number}`, expiryMs: 600_000, onConnected: () => {} };
    await cluster.run(broker.attach({ ...request, ...rest }, new SlowPeer()));
  }
  const monotonic = cluster.clock.monotonic.bind(cluster.clock);
  cluster.clock.monotonic = () => monotonic() + ends.ms;
  gate.cut("refused");
  await cluster.clock.advance(10_000);
  expect(ends.reasons).toEqual(Array.from({ length: 100 }, () => "stale"));
  expect(Math.max(...ends.counts)).toBeLessThan(10);
  gate.heal();
  await cluster.stopAll();
});
