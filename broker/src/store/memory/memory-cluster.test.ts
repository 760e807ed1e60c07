import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { testCoordinator } from "../../ports/coordinator.contract.ts";
import { testGroupRecords } from "../../ports/group-records.contract.ts";
import { testJournal } from "../../ports/journal.contract.ts";
import { testSharedStore } from "../../ports/store-shared.contract.ts";
import { testStore } from "../../ports/store.contract.ts";
import { testSessionStore } from "../../ports/session-store.contract.ts";
import { createMemoryCluster } from "./memory-cluster.ts";

const createStore = async () => createMemoryCluster({ clock: new VirtualClock() }).store;
testStore("memory of a cluster", createStore);
testSessionStore("memory of a cluster", createStore);
testJournal("memory of a cluster", createStore);
testGroupRecords("memory of a cluster", createStore);

testSharedStore("memory of a cluster", async () => {
  const { store, coordinator } = createMemoryCluster({ clock: new VirtualClock() });
  return { stores: [store, store], coordinator, close: async () => {} };
});

testCoordinator("memory", async () => {
  const clock = new VirtualClock();
  const { store, coordinator } = createMemoryCluster({ clock });
  return {
    store,
    coordinators: [coordinator, coordinator],
    insert: async (subscriptions) => {
      for (const subscription of subscriptions) await store.insertSubscription(subscription, 0);
    },
    elapse: async (durationMs) => clock.advance(durationMs),
    close: async () => {},
  };
});
