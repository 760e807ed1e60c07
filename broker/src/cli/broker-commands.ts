/** Commands that work on the settings and the data of a broker, and read their flags themselves, with a summary of each. */
export const brokerCommands: Readonly<Record<string, string>> = {
  start: "Starts a broker; so does stele without a command. stele start --help lists every setting.",
  verify: "Verifies an event or a topic against the chain.",
  key: "Makes, lists and revokes keys of clients.",
  role: "Shows roles, and sets and deletes those of the store.",
  scrub: "Looks for damage in the data folder of a stopped broker.",
  backup: "Copies the data folder of a broker, also while it runs.",
  restore: "Restores a data folder from a backup.",
  activate: "Lets a restored broker call receivers and sign.",
};
