/** Returns a function that builds a value at its first call and keeps it. After a failed build, the next call tries again. */
export function once<Value>(build: () => Value): () => Value {
  let kept: { readonly value: Value } | undefined;
  return () => {
    kept ??= { value: build() };
    return kept.value;
  };
}
