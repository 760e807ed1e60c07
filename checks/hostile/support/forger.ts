import { topicRegistryAbi } from "@stele/contracts";
import { encodeEventTopics, type Hex } from "viem";

const [published] = encodeEventTopics({ abi: topicRegistryAbi, eventName: "EventsPublished" });
/** EVM code that writes a log with our event signature and no data. */
const writeLog = `7f${published.slice(2)}60006000a1`;
/** EVM code that decrements the count on the stack, and jumps while it is not zero. */
const again = (target: string): string => `600190038060${target}5700`;

/** Creation code of a contract that writes `count` logs with our event signature: 430 bytes of JSON each. */
export function forgerOfLogs(count: number): Hex {
  return `0x63${toWord(count)}5b${writeLog}${again("05")}`;
}

/** Creation code of a contract that creates `count` others. Each writes one such log, so every log has another unknown address. */
export function forgerOfContracts(count: number): Hex {
  const child = `${writeLog}00`;
  const length = (child.length / 2).toString(16).padStart(2, "0");
  const copyChild = `60${length}601e600039`;
  const createChild = `60${length}60006000f050`;
  return `0x${copyChild}63${toWord(count)}5b${createChild}${again("0c")}${child}`;
}

function toWord(count: number): string {
  return count.toString(16).padStart(8, "0");
}
