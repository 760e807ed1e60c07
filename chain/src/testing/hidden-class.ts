import { setFlagsFromString } from "node:v8";
import { runInThisContext } from "node:vm";

setFlagsFromString("--allow-natives-syntax");
const haveSameMap = runInThisContext("(one, other) => %HaveSameMap(one, other)") as (
  one: object,
  other: object,
) => boolean;

/** Whether V8 keeps both objects in one layout. If each new object has its own, all code that reads them is slow. */
export function shareHiddenClass(one: object, other: object): boolean {
  return haveSameMap(one, other);
}
