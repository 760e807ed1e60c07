// Orders the test files of a project so that the longest start first. Otherwise one of them may run alone at the end. Vitest itself knows how long each file
// took in the last run. A fresh clone has no last run: there, Vitest begins with the largest files. Files that wait for timers are spread over the run:
// side by side they would leave the processors idle. Types: longest-first.d.mts.
import { BaseSequencer } from "vitest/node";

/** Files of unit tests that wait for timers most of their time, for more than a second. The longest come first. */
export const waiting = [
  "broker/src/tokens/oidc-provider.test.ts",
  "broker/src/gateway/mqtt/pressure.test.ts",
  "broker/src/ledger/evm/endpoint/endpoint-set.subscription.test.ts",
  "broker/src/ledger/evm/endpoint/endpoint-set.odd-answers.test.ts",
  "broker/src/sink/webhook/lookup/dns-resolver.test.ts",
  "broker/src/gateway/stomp/admission.test.ts",
  "broker/src/ledger/evm/endpoint/connection.test.ts",
  "broker/src/verify/broker-client.test.ts",
  "broker/src/gateway/http-server.test.ts",
  "broker/src/gateway/http-tls.test.ts",
  "broker/src/ledger/evm/endpoint/endpoint-set.test.ts",
  "broker/src/backup/slow-disk.test.ts",
  "broker/src/gateway/stomp/pressure.test.ts",
  "broker/src/sink/webhook/guarded-connector.test.ts",
  "broker/src/gateway/stomp/accepted.test.ts",
  "broker/src/gateway/mqtt/live.test.ts",
  "broker/src/gateway/mqtt/tls-listener.test.ts",
  "broker/src/telemetry/audit-log.test.ts",
  "broker/src/gateway/shared/connection/socket-server.test.ts",
];

/**
 * Files that take longest, as `npm test -- --slow` prints them: first a unit test, then histories, then all others that take 22 s or more. In each part, the
 * longest come first.
 */
export const longest = [
  "broker/src/store/sql/sql-store.test.ts",
  "broker/src/engine/reorganisation.prop.test.ts",
  "broker/src/engine/session/shares/share.cluster.prop.test.ts",
  "broker/src/engine/retention/store-with-dropped.prop.test.ts",
  "checks/faults/cluster/chain-outage.test.ts",
  "checks/faults/chain/endpoint.test.ts",
  "checks/journeys/examples.test.ts",
  "broker/src/store/sql/postgres/postgres-faults.test.ts",
  "checks/faults/cluster/life.test.ts",
  "checks/faults/chain/reorganisation.test.ts",
  "checks/faults/cluster/nodes.test.ts",
  "checks/faults/retention.test.ts",
  "checks/faults/chain/node.test.ts",
  "checks/behaviour/cluster.test.ts",
  "checks/faults/cluster/outage.test.ts",
  "checks/faults/operate.test.ts",
  "checks/journeys/cli-forms.test.ts",
  "checks/journeys/generated.test.ts",
  "checks/faults/cluster/tail.test.ts",
  "checks/hostile/strangers.test.ts",
  "checks/faults/cluster/frozen.test.ts",
  "checks/faults/life.test.ts",
  "broker/src/store/sql/postgres/postgres-store.test.ts",
  "checks/journeys/console-operators.test.ts",
  "checks/faults/damage/stale-page.test.ts",
  "checks/journeys/access.test.ts",
  "checks/behaviour/anvil-clock.test.ts",
  "checks/journeys/packed.test.ts",
  "checks/faults/cluster/client-subscription.test.ts",
  "checks/faults/cluster/mqtt.test.ts",
  "checks/journeys/proofs.test.ts",
  "checks/journeys/console-log-in.test.ts",
  "checks/faults/power/power-loss.test.ts",
  "broker/src/compose/start-server.test.ts",
  "checks/journeys/cluster.test.ts",
  "checks/behaviour/chain-endpoint.test.ts",
  "checks/journeys/pairs.test.ts",
  "checks/journeys/console.test.ts",
  "checks/faults/chain/shared.test.ts",
  "checks/faults/kill.test.ts",
  "checks/conformance/mqtt/conformance.test.ts",
  "checks/hostile/access.test.ts",
  "checks/journeys/backup.test.ts",
  "checks/behaviour/anvil-instant.test.ts",
  "checks/journeys/console-cluster.test.ts",
  "checks/hostile/secrets.test.ts",
  "checks/faults/damage/random.test.ts",
  "checks/hostile/quotas.test.ts",
  "checks/hostile/tenants.test.ts",
  "checks/hostile/tail-many.test.ts",
  "broker/src/store/sql/postgres/coordination/postgres-coordinator-faults.test.ts",
  "checks/hostile/mqtt-return.test.ts",
  "checks/hostile/same-index.test.ts",
  "checks/hostile/callbacks.test.ts",
  "checks/hostile/audit.test.ts",
  "checks/hostile/access-operators.test.ts",
  "broker/src/ledger/evm/evm-ledger.writer.faults.test.ts",
  "checks/faults/chain/transactions.test.ts",
  "checks/hostile/no-unknown-error-connections.test.ts",
  "checks/faults/kill-publish-once.test.ts",
];

export class LongestFirst extends BaseSequencer {
  async sort(files) {
    const usual = await super.sort(files); // oxlint-disable-line unicorn/no-array-sort -- Vitest's method, not the one of arrays
    // Vitest ends a worker when the next file is of another project, and the new worker loads all modules again: so projects come one after another.
    const projects = [...new Set(usual.map(({ project }) => project))];
    return projects.flatMap((project) => order(usual.filter((file) => file.project === project)));
  }
}

function order(files) {
  const ranked = (list) => files.filter((file) => isIn(list, file)).toSorted(byRank(list));
  const others = files.filter((file) => !isIn(waiting, file) && !isIn(longest, file));
  return spread(ranked(waiting), [...ranked(longest), ...others]);
}

/** Starts with the first of `few`, and puts the same number of the others after each of them. */
function spread(few, others) {
  if (few.length === 0) return others;
  const gap = Math.ceil(others.length / few.length);
  return few.flatMap((file, index) => [file, ...others.slice(index * gap, (index + 1) * gap)]);
}

const rankOf = (list, { moduleId }) => list.findIndex((path) => moduleId.endsWith(`/${path}`));
const isIn = (list, file) => rankOf(list, file) !== -1;
const byRank = (list) => (left, right) => rankOf(list, left) - rankOf(list, right);
