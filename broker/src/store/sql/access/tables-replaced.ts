/** Older copies replaced the tables of keys and roles while this process was reading their changes. */
export class TablesReplaced extends Error {
  override readonly name = "TablesReplaced";

  constructor(what: "keys" | "roles") {
    super(`the ${what} were replaced by older ones, so that changes would be missed: restart the broker`);
  }
}
