// How to start npm. Types and contract: npm-command.d.mts.
export function toNpmCommand(args, platform = process.platform) {
  if (platform !== "win32") return { command: "npm", args, shell: false };
  // On Windows, npm is a script, which Node.js starts only by a shell. No path there has a quotation mark.
  return { command: ["npm", ...args.map((arg) => `"${arg}"`)].join(" "), args: [], shell: true };
}
