import { setTimeout as wait } from "node:timers/promises";

const pollMs = 20;

/**
 * The blocks that a node made during a measurement.
 * @typedef {object} Watched
 * @property {number} from number of the first block, which is not counted: it was already being filled when the watch began
 * @property {number} to number of the last block
 * @property {number} seconds between seeing the first and the last block
 * @property {number} gasShare gas used by the counted blocks, as a share of their gas limits
 */

/** Watches the blocks of a node for a while. @returns {Promise<Watched>} */
export async function watchBlocks(anvil, { warmUpMs, measureMs }) {
  await wait(warmUpMs);
  const first = await nextBlock(anvil);
  const endAt = first.seenAt + measureMs;
  let last = first;
  let used = 0;
  let limit = 0;
  while (last.seenAt < endAt) {
    const block = await nextBlock(anvil, last.number);
    for (let number = last.number + 1; number <= block.number; number += 1) {
      const header = await anvil.request("eth_getBlockByNumber", [toHex(number), false]);
      used += Number(header.gasUsed);
      limit += Number(header.gasLimit);
    }
    last = block;
  }
  return {
    from: first.number,
    to: last.number,
    seconds: (last.seenAt - first.seenAt) / 1000,
    gasShare: used / limit,
  };
}

/** Waits for a head above block `after`, by default above the current head. */
async function nextBlock(anvil, after) {
  const before = after ?? Number(await anvil.request("eth_blockNumber"));
  for (;;) {
    await wait(pollMs);
    const number = Number(await anvil.request("eth_blockNumber"));
    if (number > before) return { number, seenAt: performance.now() };
  }
}

/** Waits until the node's transaction pool is empty. */
export async function waitUntilIdle(anvil) {
  for (;;) {
    const { pending, queued } = await anvil.request("txpool_status");
    if (Number(pending) === 0 && Number(queued) === 0) return;
    await wait(pollMs);
  }
}

/** The logs that match `filter` in the counted blocks. Asks for one block at a time. */
export async function logsOf(anvil, { from, to }, filter) {
  const logs = [];
  for (let number = from + 1; number <= to; number += 1) {
    const block = toHex(number);
    logs.push(...(await anvil.request("eth_getLogs", [{ fromBlock: block, toBlock: block, ...filter }])));
  }
  return logs;
}

function toHex(number) {
  return `0x${number.toString(16)}`;
}
