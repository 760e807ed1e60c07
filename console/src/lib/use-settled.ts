import { useEffect, useState } from "react";

/** How long a value must stay the same before it counts: a slider passes many values while somebody drags it. */
const settledMs = 150;

/** The latest value that has not changed for `settledMs`. */
export function useSettled<Value>(value: Value): Value {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), settledMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
