// `npm run test:long -- [ROUNDS] [SEED]`: runs the randomized histories (kills, take-overs, damage, odd requests) with ROUNDS consecutive seeds. This takes
// minutes to hours. Also tests a subscription for an hour, and the console for ten minutes. The same two numbers make the same histories.
import { run } from "./prepare.mjs";

const [rounds = "20", seed = String(Date.now() % 1_000_000_000)] = process.argv.slice(2);
const histories = [
  "contracts/src/registry.embedded.prop.test.ts",
  "broker/src/ledger/evm/evm-ledger.writer.every-call.test.ts",
  "broker/src/store/adapters-agree.prop.test.ts",
  "broker/src/engine/reorganisation.prop.test.ts",
  "broker/src/engine/cluster/cluster.prop.test.ts",
  "checks/faults/kill.test.ts",
  "checks/faults/kill-stomp.test.ts",
  "checks/faults/kill-mqtt.test.ts",
  "checks/faults/kill-mqtt-exact.test.ts",
  "checks/faults/kill-publish-once.test.ts",
  "checks/faults/kill-lanes.test.ts",
  "checks/faults/kill-tail.test.ts",
  "checks/faults/kill-dead-letters.test.ts",
  "checks/faults/operate.test.ts",
  "checks/faults/damage",
  "checks/faults/power",
  "checks/faults/retention.test.ts",
  "broker/src/engine/cluster/clock-steps.prop.test.ts",
  "checks/conformance/broken-bytes.test.ts",
  "broker/src/engine/session/session.cluster.prop.test.ts",
  "broker/src/engine/session/reorganised.cluster.prop.test.ts",
  "broker/src/engine/session/shares/share.cluster.prop.test.ts",
  "broker/src/engine/session/stored/wills.cluster.prop.test.ts",
  "broker/src/engine/session/retained/retained.cluster.prop.test.ts",
  "broker/src/engine/session/tails/tail.cluster.prop.test.ts",
  "broker/src/engine/deliver/ordered.cluster.prop.test.ts",
  "broker/src/engine/publish/publish-once.cluster.prop.test.ts",
  "broker/src/gateway/mqtt/publisher-order.cluster.prop.test.ts",
  "checks/conformance/mqtt/mutated.test.ts",
  "checks/conformance/stomp/mutated.test.ts",
  "broker/src/gateway/stomp/codec/codec.prop.test.ts",
  "checks/hostile/no-unknown-error.test.ts",
  "checks/hostile/no-unknown-error-connections.test.ts",
  "checks/faults/cluster/client-subscription.test.ts",
  "checks/journeys/console-speed.test.ts",
];
/** Number of kills in a round, and the durations of the tests that have no rounds. */
const lengths = { CHECKS_KILL_ROUNDS: "8", CHECKS_SUBSCRIPTION_MINUTES: "60", CHECKS_CONSOLE_SECONDS: "600" };

console.log(`${rounds} rounds from seed ${seed}; the same again: npm run test:long -- ${rounds} ${seed}`);
const env = { ...lengths, ...process.env, CHECKS_ROUNDS: rounds, CHECKS_SEED: seed };
process.exitCode = run(process.execPath, ["tools/test.mjs", "--reporter=verbose", ...histories], { env });
