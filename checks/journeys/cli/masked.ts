/** Replaces everything in a command's output that differs between runs by placeholders. `names` maps this run's addresses and folders to placeholders. */
export function masked(text: string, names: Readonly<Record<string, string>>): string {
  let known = text;
  for (const [name, mark] of Object.entries(names)) known = known.replaceAll(name, mark);
  return known
    .replaceAll(/0x[0-9a-f]{64}\b/g, "0xHASH")
    .replaceAll(/0x[0-9a-f]{40}\b/g, "0xADDRESS")
    .replaceAll(/\b[0-9a-f]{64}\b/g, "SHA256")
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "SUBSCRIPTION")
    .replaceAll(/\b[0-9a-f]{8}-(\d+)-\d+\b/g, "EVENT-$1")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replaceAll(
      /("(?:createdTimestamp|blockTimestamp|cursor|cursorBlock|blockNumber|block|durationMs|bytes|checked|transactionIndex|chain)": ?)\d+(\.\d+)?/g,
      "$1N",
    )
    .replaceAll(/block \d+ of \d+/g, "block N of N")
    .replaceAll(/(BLOCK +|block )\d+/g, "$1N")
    .replaceAll(/\d+( (?:bytes|blocks|entries|nodes|batches) ?)/g, "N$1")
    .replaceAll(/@\d+/g, "@N")
    .replaceAll(/ {3,}/g, "  ");
}
