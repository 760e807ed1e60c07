import { useEffect, useState } from "react";

/** How long a value stays as it is before it counts: somebody drags a slider over many. */
const settledMs = 150;

/** The value, once it has not changed for a moment. */
export function useSettled<Value>(value: Value): Value {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), settledMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
